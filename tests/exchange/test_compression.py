"""Compressed updates and their residuals, by hand; in the record and in checkpoints."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedmpi.comm.world import World
from fedmpi.compression.options import COMPRESSIONS
from fedmpi.compression.powersgd import PowerSgdOptions
from fedmpi.compression.random_k import RandomKOptions
from fedmpi.compression.top_k import TopKOptions
from fedmpi.errors import Diverged, Interrupted
from fedmpi.exchange.codes import Codes
from fedmpi.exchange.compression import BASIS, RESIDUAL, Compression
from fedmpi.exchange.down_link import DownLink
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.exchange.exchanged import reported, updates_of
from tests.mpi.session import Silent, StopsAfter, only

HALF = TopKOptions(share=0.5)


def sent(kept, update, lost=(), options=HALF):
    """Return what client 0 sends of an update of four parameters and a statistic, and its reported norm."""
    updates = updates_of([*update, 9], size=4, lost=lost)
    codes = Codes(World().collectives, np.zeros(1, np.int64), options.make([(2, 2)], 0), 5)

    def mean(participants, vectors, size):
        return vectors[0].astype(np.float64)

    link = Compression(SimpleNamespace(seed=0), {0: kept}, codes, mean)
    link.alter(0, np.arange(1), updates)
    link.settle([client for client in [0] if client not in lost])
    return updates.trained.deltas[0].tolist(), reported(updates, "delta_norm")[0]


def test_what_was_left_out_goes_with_the_next_update():
    kept = {RESIDUAL: torch.zeros(4)}
    assert sent(kept, [3, -1, 2, -4]) == ([3, 0, 0, -4, 9], 5.0)
    assert kept[RESIDUAL].tolist() == [0, -1, 2, 0]
    assert sent(kept, [1, -3, 1, 0]) == ([0, -4, 3, 0, 9], 5.0)
    assert kept[RESIDUAL].tolist() == [1, 0, 0, 0]


def test_a_client_whose_update_is_lost_keeps_its_residual():
    kept = {RESIDUAL: torch.tensor([0.0, 5.0, 0.0, 0.0])}
    assert sent(kept, [3, -1, 2, -4], lost=[0])[0] == [0, 4, 0, -4, 9]
    assert kept[RESIDUAL].tolist() == [0, 5, 0, 0]


def test_an_update_that_is_not_finite_is_left_for_the_round_to_end():
    kept = {RESIDUAL: torch.zeros(4)}
    assert sent(kept, [3, np.inf, 2, -4])[0] == [3, np.inf, 2, -4, 9]
    assert not kept[RESIDUAL].any()
    overflowing = {RESIDUAL: torch.full((4,), 3e38)}
    assert np.isinf(sent(overflowing, [3e38, 1, 1, 1])[0][0])


@pytest.mark.parametrize("options", [HALF, RandomKOptions(share=0.5, scaled=False), PowerSgdOptions(rank=1)])
def test_what_is_decoded_and_what_is_left_out_are_the_update_and_what_was_left_out_before(options):
    kept = {RESIDUAL: torch.tensor([0.5, -1.0, 0.25, 8.0]), BASIS: torch.zeros(4)}
    whole = kept[RESIDUAL].numpy() + np.array([3, -1, 2, -4])
    decoded = np.array(sent(kept, [3, -1, 2, -4], options=options)[0][:4])
    np.testing.assert_allclose(decoded + kept[RESIDUAL].numpy(), whole, rtol=1e-6)


def test_residuals_are_in_checkpoints_and_bytes_in_the_record(tmp_path):
    plain, whole = only(tmp_path / "plain", "case=sampled"), only(tmp_path / "whole", "case=top-k")
    stopped, resumed = (only(tmp_path / "stopped", "case=top-k", resume=True) for _ in range(2))
    run(plain, World(), Silent(), StopRequest())
    run(whole, World(), Silent(), StopRequest())
    stop = StopRequest()
    with pytest.raises(Interrupted):
        run(stopped, World(), StopsAfter(stop, 2), stop)
    run(resumed, World(), Silent(), StopRequest())
    assert load_run(resumed.folder).rounds_completed == 4
    assert differences(whole.folder, resumed.folder) == []
    results = load_run(whole.folder).results
    took_part, model = results["participated"].astype(bool), 29_570
    assert (results["client_bytes_up"] == took_part * 8 * round(0.01 * model)).all()
    assert (results["client_bytes_down"] == 4 * round(0.1 * model) + -(-model // 8)).all()
    assert results["test_loss"][0].tolist() != load_run(plain.folder).results["test_loss"][0].tolist()


def test_a_change_on_its_way_down_moves_replicas_and_leaves_a_residual():
    link = DownLink(HALF.make([(2, 2)], 0), 0, 5, np.zeros((2, 4), np.float32))
    present, model = np.array([1, 1, 1, 1, 7], np.float32), np.array([4, 0, 3, -3, 9], np.float32)
    packed = link.pack(0, 1, present, model)
    assert len(packed) == link.nbytes == 2 * 4 + 1 + 4
    moved = link.moved(0, 1, present, packed)
    assert moved.tolist() == [4, 1, 1, -3, 9]
    assert link.residuals.tolist() == [[0, 0, 0, 0], [0, -1, 2, 0]]
    packed = link.pack(1, 1, moved, np.array([4, -1, 2, -3, 9], np.float32))
    assert link.moved(1, 1, moved, packed).tolist() == [4, -2, 4, -3, 9]
    link.regroup(1, 0)
    assert link.residuals[0].tolist() == link.residuals[1].tolist()


@pytest.mark.parametrize("name", [name for name, each in COMPRESSIONS.items() if not each.pooled])
def test_a_model_that_is_not_finite_reaches_the_clients_as_such(name):
    compressor = COMPRESSIONS[name]().make([(2, 2)], 0)
    if compressor is None:
        return
    link = DownLink(compressor, 0, 4, np.zeros((1, 4), np.float32))
    for wrong in (np.nan, np.inf):
        packed = link.pack(0, 0, np.zeros(4, np.float32), np.array([wrong, 0, 1, 2], np.float32))
        assert len(packed) == link.nbytes
        assert np.isnan(link.moved(0, 0, np.zeros(4, np.float32), packed)).all()


def test_a_server_that_diverges_ends_the_run_in_the_same_round_whatever_travels_down(tmp_path):
    lines = []
    for down in ("none", "float16"):
        settings = ("case=fedavg", 'algorithm={name="fedsgd",server_lr=1e42}', f"down_compression={down}")
        with pytest.raises(Diverged) as error:
            run(only(tmp_path / down, *settings), World(), Silent(), StopRequest())
        lines.append(str(error.value))
    assert lines[0] == lines[1]


def test_everybody_gets_the_changes(tmp_path):
    settings = "case=fedavg", "participation=0.6"
    exact = only(tmp_path / "exact", *settings)
    whole = only(tmp_path / "whole", *settings, "down_compression=float16")
    for job in (whole, exact):
        run(job, World(), Silent(), StopRequest())
    down, none = (load_run(job.folder).results for job in (whole, exact))
    model = 24_960
    assert (down["client_bytes_down"] == 2 * model).all()
    assert (none["client_bytes_down"] == none["participated"].astype(bool) * 4 * model).all()
    assert np.array_equal(down["client_bytes_up"], none["client_bytes_up"])
