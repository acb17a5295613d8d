"""The same rounds in one process alone and in several side by side: what more ranks can gain on this machine.

Cores share the last cache, the memory and the power; what two workers can do is therefore less than twice
what one can, whatever the ranks say to each other. The processes here say nothing to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.samples import Measurement, Report, Samples, ratios
from fedmpi.clock import Stopwatch
from fedmpi.comm.start import load_world
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.errors import RunFailed
from fedmpi.registry.check import Checked

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event, Semaphore

_START_S = 300.0
"""Patience with a companion that loads its data and compiles."""

_LOOK_S = 1.0
"""Between two looks whether companions still live."""


@dataclass(frozen=True)
class _Gate:
    """`go` while companions shall work, `end` when they shall leave; `ready` counts those that can start."""

    go: Event
    end: Event
    ready: Semaphore


def measure(
    checked: Checked, source: DataSource, world: World, processes: int, repetitions: int, warmup: int
) -> Report:
    """Time the same round in turn alone and while ``processes - 1`` others run such rounds.

    Parameters
    ----------
    checked : Checked
        Case whose rounds are timed.
    source : DataSource
    world : World
    processes : int
        Processes that compute at the same time, this one included.
    repetitions, warmup : int
        Measured rounds, and rounds before them that do not count.

    Returns
    -------
    Report
        Seconds of each, and the gain: how many times the work of one process all of them do together.

    Raises
    ------
    RunFailed
        A companion ended or was not ready in time.
    """
    prepared = prepare(checked, source, world)
    alone: list[float] = []
    beside: list[float] = []
    with deterministic(True), _companions(checked, source, processes - 1) as (gate, helpers):
        for number in range(warmup + repetitions):
            for samples, busy in ((alone, False), (beside, True)):
                if busy:
                    gate.go.set()
                watch = Stopwatch()
                _round(prepared, number)
                seconds = watch.wall
                gate.go.clear()
                _refuse_dead(helpers)
                samples.append(seconds)
    one, many = (Samples.of("s", samples[warmup:]) for samples in (alone, beside))
    gain = Samples.of("1", (processes * ratio for ratio in ratios(one, many).values))
    figures = {"alone_seconds": one, "beside_seconds": many, "gain": gain}
    settings: dict[str, Any] = {"processes": processes, "repetitions": repetitions, "warmup": warmup}
    settings["case"] = prepared.case.config()
    statement = (
        f"{processes} processes side by side do {gain.median:.2f} times the work of one "
        f"({gain.minimum:.2f} to {gain.maximum:.2f}): {processes} workers cannot do more on this machine"
    )
    found = [Measurement({"processes": processes}, figures)]
    return Report("cores", settings, found, {"gain": gain.median}, [statement])


def _round(prepared: Prepared, number: int) -> None:
    """Train and evaluate every client once."""
    for group in prepared.groups:
        prepared.train(group, number)
        prepared.evaluate(group)


@contextmanager
def _companions(
    checked: Checked, source: DataSource, count: int
) -> Iterator[tuple[_Gate, Sequence[BaseProcess]]]:
    """Start processes that run rounds while the gate is open, and end them."""
    context = get_context("spawn")  # MPI and compiled kernels do not survive a fork
    gate = _Gate(context.Event(), context.Event(), context.Semaphore(0))
    helpers = [context.Process(target=_work, args=(checked, source, gate), daemon=True) for _ in range(count)]
    for helper in helpers:
        helper.start()
    try:
        _wait_until_ready(gate, helpers)
        yield gate, helpers
    finally:
        gate.end.set()
        gate.go.set()
        for helper in helpers:
            helper.join(10)
            if helper.is_alive():
                helper.kill()


def _wait_until_ready(gate: _Gate, helpers: Sequence[BaseProcess]) -> None:
    watch = Stopwatch()
    for _ in helpers:
        while not gate.ready.acquire(timeout=_LOOK_S):
            _refuse_dead(helpers)
            if watch.wall > _START_S:
                raise RunFailed(f"bench cores: a process beside this one was not ready in {_START_S:.0f} s")


def _refuse_dead(helpers: Sequence[BaseProcess]) -> None:
    for helper in helpers:
        if not helper.is_alive():
            code = helper.exitcode
            raise RunFailed(f"bench cores: a process beside this one has ended with exit code {code}")


def _work(checked: Checked, source: DataSource, gate: _Gate) -> None:
    """Run clients' rounds in a companion for as long as the gate is open."""
    prepared = prepare(checked, source, load_world().World())
    _round(prepared, 0)
    gate.ready.release()
    number = 0
    with deterministic(True):
        while not gate.end.is_set():
            gate.go.wait()
            group = prepared.groups[number % len(prepared.groups)]
            prepared.train(group, number)
            prepared.evaluate(group)
            number += 1
