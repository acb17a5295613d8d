"""Compressors on vectors worked by hand, and the inequalities of their papers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from fedmpi.compression.base import Compressor, Linear
from fedmpi.compression.halves import Bfloat16, Float16
from fedmpi.compression.options import COMPRESSIONS
from fedmpi.compression.powersgd import PowerSgd
from fedmpi.compression.random_k import RandomK
from fedmpi.compression.sign import Sign
from fedmpi.compression.top_k import TopK

TEN = np.array([0.5, -3.0, 0.0, 2.0, -0.25, 3.0, 1.0, -1.0, 0.125, -2.0], np.float32)
SHAPES = [(2, 3), (4,)]

KINDS: dict[str, Any] = {**COMPRESSIONS}
ALONE = [name for name, options in KINDS.items() if not options().linear]


def _made(name: str, shapes: Sequence[tuple[int, ...]], **options: Any) -> Any:
    return KINDS[name](name=name, **options).make(shapes, 1)


def _both(compressor: Compressor, update: np.ndarray[Any, Any], stream: int = 1) -> np.ndarray[Any, Any]:
    sent = compressor.encode(update, stream)
    assert sent.dtype == np.uint8
    assert len(sent) == compressor.nbytes
    decoded = compressor.decode(sent)
    assert decoded.dtype == np.float32
    return decoded


def _random(size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def _alone(updates: dict[int, Any], size: int) -> Any:
    """Return the mean over one client."""
    (update,) = updates.values()
    return update.astype(np.float64)


@pytest.mark.parametrize("name", ALONE)
def test_bytes_are_those_declared_and_zeros_stay_zeros(name: str) -> None:
    for shapes in ([(1,)], SHAPES, [(100, 10), (7,)]):
        compressor = _made(name, shapes)
        size = sum(int(np.prod(shape)) for shape in shapes)
        assert not _both(compressor, np.zeros(size, np.float32)).any()
        _both(compressor, _random(size))


@pytest.mark.parametrize("name", ALONE)
def test_the_same_stream_gives_the_same_bytes(name: str) -> None:
    compressor = _made(name, [(1000,)])
    first, second = (compressor.encode(_random(1000), 7) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_halves_round_to_nearest_and_cut_what_is_beyond() -> None:
    update = np.array([1.0, 1 + 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 1e6, -3.4e38], np.float32)
    np.testing.assert_array_equal(_both(Float16([(6,)]), update)[:5], [1, 1, 1 + 2**-8, 1 + 3 * 2**-8, 65504])
    halves = _both(Bfloat16([(6,)]), update)
    np.testing.assert_array_equal(halves[:4], [1, 1, 1, 1 + 2**-6])
    assert np.isfinite(halves).all()
    assert Float16([(6,)]).nbytes == Bfloat16([(6,)]).nbytes == 12


def test_int8_has_a_scale_per_block() -> None:
    update = np.concatenate([np.full(256, 127.0), [0.5, -1.0]]).astype(np.float32)
    decoded = _both(_made("int8", [(258,)]), update)
    np.testing.assert_array_equal(decoded[:256], 127.0)
    assert decoded[257] == -1.0
    assert abs(decoded[256] - 0.5) <= 1 / 127
    assert _made("int8", [(258,)]).nbytes == 258 + 2 * 4


def test_top_k_takes_the_largest_and_of_equals_the_first() -> None:
    three, two = TopK(SHAPES, 0.3), TopK(SHAPES, 0.15)
    np.testing.assert_array_equal(_both(three, TEN), [0, -3, 0, 2, 0, 3, 0, 0, 0, 0])
    np.testing.assert_array_equal(_both(two, TEN), [0, -3, 0, 0, 0, 3, 0, 0, 0, 0])
    np.testing.assert_array_equal(_both(TopK(SHAPES, 0.5), TEN), [0, -3, 0, 2, 0, 3, 1, 0, 0, -2])


def test_top_k_sends_places_or_a_bitmap_whichever_is_smaller() -> None:
    assert TopK([(10_000,)], 0.001).nbytes == 10 * 8
    assert TopK([(10_000,)], 0.1).nbytes == 1000 * 4 + 1250
    update = _random(10_000)
    for share in (0.001, 0.1):
        compressor = TopK([(10_000,)], share)
        decoded = _both(compressor, update)
        assert np.count_nonzero(decoded) == compressor.k
        np.testing.assert_array_equal(decoded[decoded != 0], update[decoded != 0])


def test_sign_sends_the_mean_magnitude_of_each_tensor() -> None:
    decoded = _both(Sign(SHAPES), TEN)
    first, second = np.abs(TEN[:6]).mean(), np.abs(TEN[6:]).mean()
    np.testing.assert_allclose(decoded[:6], first * np.array([1, -1, 1, 1, -1, 1]), rtol=1e-6)
    np.testing.assert_allclose(decoded[6:], second * np.array([1, -1, 1, -1]), rtol=1e-6)
    assert Sign(SHAPES).nbytes == 2 + 2 * 4


def test_qsgd_packs_levels_of_a_blocks_norm() -> None:
    compressor = _made("qsgd", [(4,)], levels=1)
    assert compressor.nbytes == 1 + 4  # levels -1, 0, 1 take two bits
    for stream in range(20):
        levels = _both(compressor, np.array([3.0, -4.0, 0.0, 0.0], np.float32), stream) / 5
        assert set(levels.tolist()) <= {-1.0, 0.0, 1.0}
        assert levels[0] >= 0 >= levels[1]
        assert not levels[2:].any()


@pytest.mark.parametrize(("name", "options"), [("int8", {}), ("qsgd", {"levels": 2})])
def test_the_mean_over_draws_is_the_update(name: str, options: dict[str, Any]) -> None:
    update, draws, compressor = _random(40), 4000, _made(name, [(40,)], block=16, **options)
    total = sum(_both(compressor, update, stream).astype(np.float64) for stream in range(draws))
    widest = float(np.linalg.norm(update)) / options.get("levels", 127)
    assert np.abs(total / draws - update).max() < 4 * widest / np.sqrt(draws)


def test_random_k_is_right_in_the_mean_and_adds_up() -> None:
    compressor, update, total = RandomK([(40,)], 0.25, scaled=True), _random(40), np.zeros(40)
    for stream in range(4000):
        compressor.prepare({}, stream, _alone)
        total += compressor.expand(compressor.project(update))
    assert np.abs(total / 4000 - update).max() < 4 * np.abs(update).max() * np.sqrt(3 / 4000)
    first, second = _random(40, 1), _random(40, 2)
    both = compressor.project(first).astype(np.float64) + compressor.project(second)
    apart = compressor.expand(compressor.project(first)) + compressor.expand(compressor.project(second))
    np.testing.assert_array_equal(compressor.expand(both), apart)
    assert compressor.nbytes == 40


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_top_k_contracts(share: float) -> None:
    update = _random(1000)
    compressor = TopK([(1000,)], share)
    left = update - _both(compressor, update)
    assert left @ left <= (1 - compressor.k / 1000) * (update @ update)


@pytest.mark.parametrize("name", [name for name in ALONE if KINDS[name]().contracts])
def test_what_says_so_never_lengthens(name: str) -> None:
    compressor = _made(name, [(300,), (30, 20)])
    for seed in range(20):
        update = _random(900, seed)
        assert np.linalg.norm(_both(compressor, update).astype(float)) <= np.linalg.norm(update.astype(float))


CHOICES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ALONE),
    ("qsgd", {"levels": 12}),
    ("random-k", {}),
    ("random-k", {"scaled": False}),
]


@pytest.mark.parametrize(("name", "options"), CHOICES)
def test_what_says_so_comes_nearer_than_nothing(name: str, options: dict[str, Any]) -> None:
    compressor, errors = _made(name, [(900,)], **options), []
    for seed in range(20):
        update = _random(900, seed)
        if isinstance(compressor, Linear):
            compressor.prepare({}, seed, _alone)
        left = update - _both(compressor, update, seed)
        errors.append(left @ left / (update @ update))
    assert (np.mean(errors) < 1) == KINDS[name](name=name, **options).approaches


@pytest.mark.parametrize(
    ("compressor", "error"),
    [
        (TopK([(900,)], 1.0), 0.0),
        (_made("qsgd", [(900,)], levels=32_000), 1e-3),
        (PowerSgd([(30, 30)], 30, 1), 1e-6),
    ],
    ids=["all elements", "many levels", "full rank"],
)
def test_with_nothing_left_out_the_update_arrives(compressor: Compressor, error: float) -> None:
    update = _random(900)
    if isinstance(compressor, Linear):
        compressor.prepare({0: update}, 1, _alone)
        decoded = compressor.expand(compressor.project(update))
    else:
        decoded = _both(compressor, update)
    assert np.abs(decoded - update).max() <= error


def test_powersgd_finds_a_matrix_of_its_rank() -> None:
    rng = np.random.default_rng(0)
    matrix = (rng.standard_normal((20, 2)) @ rng.standard_normal((2, 30))).astype(np.float32)
    vector = _random(5)
    compressor = PowerSgd([(20, 30), (5,)], 2, 1)
    update = np.concatenate([matrix.reshape(-1), vector])
    compressor.prepare({3: update}, 1, _alone)
    np.testing.assert_allclose(compressor.expand(compressor.project(update)), update, rtol=1e-4, atol=1e-5)
    assert compressor.nbytes == 4 * (2 * (20 + 30) + 5)


def test_powersgds_error_falls_with_its_steps() -> None:
    update, compressor = _random(400), PowerSgd([(20, 20)], 3, 1)
    matrix, errors = update.reshape(20, 20).astype(float), []
    for _ in range(30):
        compressor.prepare({0: update}, 1, _alone)
        compressor.q = compressor.project(update)
        errors.append(np.linalg.norm(compressor.expand(compressor.q) - update))
    best = np.linalg.svd(matrix, compute_uv=False)[3:]
    assert errors[0] > errors[-1]
    assert errors[-1] == pytest.approx(np.sqrt((best**2).sum()), rel=0.02)


def test_powersgd_takes_the_step_of_pytorchs_hook(tmp_path: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1
    )
    try:
        matrix = torch.from_numpy(_random(600).reshape(20, 30))
        layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(30, 20, bias=False))
        state = powerSGD_hook.PowerSGDState(None, 3, start_powerSGD_iter=2, use_error_feedback=False)
        layer.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        compressor = PowerSgd([(20, 30)], 3, 1)
        for _ in range(5):
            before = {key: q.clone() for key, q in state.q_memory_dict.items()}
            layer.zero_grad()
            (layer(torch.eye(30)) * matrix.T).sum().backward()
        (q,) = before.values()
        compressor.q = q.numpy().reshape(-1)
        update = matrix.numpy().reshape(-1)
        compressor.prepare({0: update}, 1, _alone)
        decoded = compressor.expand(compressor.project(update)).reshape(20, 30)
        np.testing.assert_allclose(layer.module.weight.grad.numpy(), decoded, rtol=1e-4, atol=1e-5)
    finally:
        time.sleep(
            0.2
        )  # Gloo's thread takes Python's lock to drop the last sum, and the group's end holds it
        torch.distributed.destroy_process_group()


def test_a_matrix_that_was_zero_in_a_round_travels_again() -> None:
    compressor, update = PowerSgd([(20, 30), (5,)], 2, 1), _random(605)
    silent = update.copy()
    silent[:600] = 0
    norms = []
    for sent in (update, silent, update, update):
        compressor.prepare({0: sent}, 1, _alone)
        coefficients = compressor.project(sent)
        compressor.begin(coefficients)
        norms.append(float(np.linalg.norm(compressor.expand(coefficients)[:600])))
    assert norms[1] == 0
    assert min(norms[0], norms[2], norms[3]) > 5
