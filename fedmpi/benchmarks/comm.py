"""The collectives and reductions of a round over sizes, against the same data pickled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, listed, rates, ratios
from fedmpi.comm import reductions
from fedmpi.comm.benchmark import Pickled, line_up, slowest
from fedmpi.comm.world import World

SIZES = (1_000, 24_960, 1_000_000)
"""Floats per rank; the middle one is what GCFL's clients share."""

_REDUCTIONS = ("exact", "float32", "fixed32")
_WEIGHT = 100
_CLIP = 1.0

Array = npt.NDArray[Any]
Action = Callable[[], object]


@dataclass(frozen=True)
class _Exchange:
    """One exchange: the rank's payload in bytes, its steps by name, and the same by pickling."""

    operation: str
    payload_bytes: int
    steps: dict[str, Action]
    pickled: Action | None = None
    """Point-to-point messages from rank 0; towards it mpi4py's gather of pickles."""


def measure(world: World, sizes: Sequence[int], turns: Turns) -> Report:
    """Time every exchange on the ranks that there are (a collective call).

    The ranks line up before each; its time is that of the slowest rank. Collective and pickled exchange
    follow each other, so that their ratio is one of neighbours.

    Parameters
    ----------
    world : World
    sizes : sequence of int
        Elements of the float32 messages.
    turns : Turns

    Returns
    -------
    Report
        Per operation and size the seconds of the collective (of a reduction also of its steps), of the
        pickled exchange, and their ratio; the same on every rank.
    """
    found = [_measure(world, each, turns) for each in _all_exchanges(world, sizes)]
    settings = {"ranks": world.size, "crowded": world.collectives.crowded, "sizes": list(sizes)}
    return Report("comm", settings | vars(turns), found, {}, _statements(found))


def _all_exchanges(world: World, sizes: Sequence[int]) -> list[_Exchange]:
    exchanges = [_Exchange("Ibarrier", 0, {"collective": world.collectives.wait_for_all})]
    for size in sizes:
        delta = np.random.default_rng(world.rank).uniform(-0.1, 0.1, size).astype(np.float32)
        exchanges += _collectives(world, delta)
        exchanges += [_reduction(world, name, delta) for name in _REDUCTIONS]
    return exchanges


def _collectives(world: World, delta: Array) -> list[_Exchange]:
    """Return the moves of a round; a rank hands over or gets one model. One rank has nobody to send to."""
    collectives, pickled, ranks = world.collectives, Pickled(world.comm), world.size
    counts = [len(delta)] * ranks
    whole = np.concatenate([delta] * ranks) if world.is_root else None
    integers = np.rint(delta * 2**30).astype(np.int64)

    def pickled_sum() -> Array | None:
        parts = pickled.gather(integers)
        return None if parts is None else np.sum(parts, axis=0)

    moves: dict[str, tuple[Action, Action]] = {
        "Bcast": (lambda: collectives.bcast(delta), lambda: pickled.send_to_all(delta)),
        "Gatherv": (lambda: collectives.gatherv(delta, counts), lambda: pickled.gather(delta)),
        "Scatterv": (
            lambda: collectives.scatterv(whole, counts, np.float32),
            lambda: pickled.send_to_each([delta] * ranks),
        ),
        "Reduce": (lambda: collectives.reduce(integers), pickled_sum),
    }
    to_others = ("Bcast", "Scatterv") if ranks == 1 else ()
    return [
        _Exchange(
            name,
            (integers if name == "Reduce" else delta).nbytes,
            {"collective": move},
            None if name in to_others else plain,
        )
        for name, (move, plain) in moves.items()
    ]


def _reduction(world: World, name: str, delta: Array) -> _Exchange:
    """Return a weighted mean of one delta per rank: encode, sum, decode; pickled: gather, then the mean."""
    weights = [_WEIGHT + rank for rank in range(world.size)]
    exponent = int(np.ceil(np.log2(max(weights))))
    maker = reductions.make(name, world.size, exponent, sum(weights), _CLIP)
    pickled, held = Pickled(world.comm), {"sum": np.zeros(len(delta), maker.dtype)}

    def encode() -> None:
        held["own"] = maker.encode(delta, weights[world.rank])

    def reduce() -> None:
        total = world.collectives.reduce(held["own"])
        if total is not None:
            held["sum"] = total

    def decode() -> None:
        if world.is_root:
            maker.decode(held["sum"])

    def pickled_mean() -> Array | None:
        parts = pickled.gather(delta)
        return None if parts is None else np.average(np.stack(parts), axis=0, weights=weights)

    steps: dict[str, Action] = {"encode": encode, "reduce": reduce, "decode": decode}
    return _Exchange(f"mean, {name}", len(delta) * maker.dtype().nbytes, steps, pickled_mean)


def _measure(world: World, exchange: _Exchange, turns: Turns) -> Measurement:
    actions = exchange.steps | ({"pickled": exchange.pickled} if exchange.pickled else {})
    timed = turns.of({f"{name}_seconds": partial(_timed, world, each) for name, each in actions.items()})
    seconds = slowest(world.comm, np.array(list(timed.values())).T)
    figures = {name: Samples.of("s", column) for name, column in zip(timed, seconds.T, strict=True)}
    whole = Samples.of("s", seconds[:, : len(exchange.steps)].sum(axis=1))
    figures["collective_seconds"] = whole
    payload = exchange.payload_bytes
    if payload:
        figures["payload_rate"] = rates("GB/s", [payload / 1e9] * turns.repetitions, whole)
    if exchange.pickled:
        figures["pickled_ratio"] = ratios(figures["pickled_seconds"], whole)
    labels: dict[str, str | int] = {
        "operation": exchange.operation,
        "ranks": world.size,
        "payload_bytes": payload,
    }
    return Measurement(labels, figures)


def _timed(world: World, action: Action, turn: int) -> float:
    """Line up and do something; return this rank's seconds."""
    line_up(world.comm)
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _statements(measurements: Sequence[Measurement]) -> list[str]:
    """Say of each operation how much longer pickling takes at which payload."""
    return listed(
        (
            f"{each.labels['operation']}: pickled",
            f"{each.figures['pickled_ratio'].median:.2f}x at {each.labels['payload_bytes']} B",
        )
        for each in measurements
        if "pickled_ratio" in each.figures
    )
