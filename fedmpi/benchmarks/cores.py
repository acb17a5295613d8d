"""The same rounds in one process alone and in several side by side: what more ranks can gain on this machine.

Cores share the last cache, the memory and the power; what two workers can do is therefore less than twice
what one can, whatever the ranks say to each other. The processes here say nothing to each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, ratios
from fedmpi.client.groups import Group
from fedmpi.clock import Stopwatch
from fedmpi.comm.start import load_world
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.errors import RunFailed
from fedmpi.registry.check import Checked

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event, Semaphore

_LOOK_S = 1.0
"""Between two looks whether companions still live."""


@dataclass(frozen=True)
class _Gate:
    """`go` while companions shall work, `end` when they shall leave; `ready` counts those that can start."""

    go: Event
    end: Event
    ready: Semaphore


def measure(checked: Checked, source: DataSource, world: World, processes: int, turns: Turns) -> Report:
    """Time the same round in turn alone and while ``processes - 1`` others run such rounds.

    Parameters
    ----------
    checked : Checked
        Case whose rounds are timed.
    source : DataSource
    world : World
    processes : int
        Processes that compute at the same time, this one included.
    turns : Turns

    Returns
    -------
    Report
        Seconds of each, and the gain: how many times the work of one process all of them do together.

    Raises
    ------
    RunFailed
        A companion ended.
    """
    prepared = prepare(checked, source, world)
    with deterministic(True), _companions(checked, source, processes - 1) as (gate, helpers):

        def seconds(number: int, *, busy: bool) -> float:
            if busy:
                gate.go.set()
            watch = Stopwatch()
            _round(prepared, number, prepared.groups)
            taken = watch.wall
            gate.go.clear()
            _refuse_dead(helpers)
            return taken

        rounds = {"alone": partial(seconds, busy=False), "beside": partial(seconds, busy=True)}
        one, many = (Samples.of("s", each) for each in turns.of(rounds).values())
    gain = Samples.of("1", (processes * ratio for ratio in ratios(one, many).values))
    figures = {"alone_seconds": one, "beside_seconds": many, "gain": gain}
    settings = {"processes": processes, **vars(turns), "case": prepared.case.config()}
    statement = (
        f"{processes} processes side by side do {gain.median:.2f} times the work of one "
        f"({gain.minimum:.2f} to {gain.maximum:.2f}): {processes} workers cannot do more on this machine"
    )
    found = [Measurement({"processes": processes}, figures)]
    return Report("cores", settings, found, {"gain": gain.median}, [statement])


def _round(prepared: Prepared, number: int, groups: Sequence[Group]) -> None:
    """Train and evaluate the clients of some groups once."""
    for group in groups:
        prepared.train(number, [group])
        prepared.evaluate(number, [group])


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
        for _ in helpers:
            while not gate.ready.acquire(timeout=_LOOK_S):
                _refuse_dead(helpers)
        yield gate, helpers
    finally:
        gate.end.set()
        gate.go.set()
        for helper in helpers:
            helper.join(10)
            if helper.is_alive():
                helper.kill()


def _refuse_dead(helpers: Sequence[BaseProcess]) -> None:
    for helper in helpers:
        if not helper.is_alive():
            code = helper.exitcode
            raise RunFailed(f"bench cores: a process beside this one has ended with exit code {code}")


def _work(checked: Checked, source: DataSource, gate: _Gate) -> None:
    """Run clients' rounds in a companion for as long as the gate is open."""
    prepared = prepare(checked, source, load_world().World())
    _round(prepared, 0, prepared.groups)
    gate.ready.release()
    with deterministic(True):
        for number in itertools.count():
            gate.go.wait()
            if gate.end.is_set():
                break
            _round(prepared, number, [prepared.groups[number % len(prepared.groups)]])
