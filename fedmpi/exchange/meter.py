"""Measurements of a rank in a round: seconds by phase, FLOPs, calls, bytes, CPU, memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.comm.collectives import NAMES, Collectives
from fedmpi.exchange.energy import Energy, PhaseEnergy
from fedmpi.programs.position import Position
from fedmpi.store.schema import PHASES


class Meter:
    """Counts of this rank since the last snapshot.

    A snapshot closes a round's row: what comes after it (record, checkpoint and
    the time of the closing message itself) is in the next round's row.

    Parameters
    ----------
    collectives : Collectives
    where : Position
    steps : tuple of str, optional
        Parts of a secure sum, whose seconds and bytes are counted apart; what comes before the first
        round is in its row.
    energy : Energy, optional
        Counters of this node, where the record holds some.

    Attributes
    ----------
    steps_cpu : dict of str to float
        CPU seconds of each step since the start; in no row.
    """

    def __init__(
        self,
        collectives: Collectives,
        where: Position,
        steps: tuple[str, ...] = (),
        energy: Energy | None = None,
    ) -> None:
        self._collectives, self._where = collectives, where
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._steps = {name: [0.0, 0.0] for name in steps}
        self.steps_cpu = dict.fromkeys(steps, 0.0)
        self.executed_flops = 0
        self._joules = PhaseEnergy(energy)
        self._before = 0.0, 0.0
        self._cpu = time.process_time()
        self._round = time.perf_counter()
        self._seen = self._counters()

    @property
    def width(self) -> int:
        """Numbers of a snapshot."""
        return len(PHASES) + 3 * len(NAMES) + 5 + 2 * len(self._steps) + self._joules.width

    def start_count(self) -> None:
        """Let the first round's counts start now."""
        self._seen = self._counters()

    @contextmanager
    def before_rounds(self, phase: str, *, counted: bool) -> Iterator[None]:
        """Add the time spent inside, before the clock starts, to a phase and to the first round's row.

        Time that is not counted is in no row.
        """
        self._joules.restart()
        start, cpu = time.perf_counter(), time.process_time()
        with self.phase(phase):
            yield
        if counted:
            self._before = time.perf_counter() - start, time.process_time() - cpu
            self._joules.hold()
        else:
            self._phases = dict.fromkeys(PHASES, 0.0)
            self._joules.row()

    def start_clock(self) -> None:
        """Let the first round's times start now; its counts hold what was sent before, the initial model."""
        seconds, cpu = self._before
        self._round, self._cpu = time.perf_counter() - seconds, time.process_time() - cpu
        self._before = 0.0, 0.0
        self._joules.restart()

    def _counters(self) -> npt.NDArray[np.float64]:
        c = self._collectives
        return np.concatenate([c.calls, c.payload_bytes, c.seconds]).astype(np.float64)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a phase, and take it from the phase around it."""
        start, before = time.perf_counter(), self._where.phase
        joules = self._joules.host()
        self._where.phase = name
        try:
            yield
        finally:
            self._where.phase = before
            spent = time.perf_counter() - start
            self._phases[name] += spent
            if before:
                self._phases[before] -= spent
            self._joules.add(name, before, joules)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time spent inside, and the payload of its collectives, to a step."""
        start, before = time.perf_counter(), self._collectives.payload_bytes.sum()
        cpu = time.process_time()
        try:
            yield
        finally:
            self.steps_cpu[name] += time.process_time() - cpu
            self._steps[name][0] += time.perf_counter() - start
            self._steps[name][1] += float(self._collectives.payload_bytes.sum() - before)

    def snapshot(self) -> npt.NDArray[np.float64]:
        """Return the row [width] of the round that ends here and start the next."""
        now, cpu = self._counters(), time.process_time()
        end = time.perf_counter()
        own = [end - self._round, cpu - self._cpu, float(self.executed_flops)]
        steps = [value for pair in self._steps.values() for value in pair]
        counts = [list(self._phases.values()), now - self._seen, own, _peak_memory(), steps]
        row = np.concatenate([*counts, self._joules.row()])
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._steps = {name: [0.0, 0.0] for name in self._steps}
        self._seen, self._cpu, self._round, self.executed_flops = now, cpu, end, 0
        return row

    def table(self, rows: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
        """Return the snapshots of all ranks, [ranks, width], as the record's measurement fields."""
        phases, names = len(PHASES), len(NAMES)
        calls, payload, seconds, own = np.split(rows[:, phases:], [names, 2 * names, 3 * names], axis=1)
        return {
            "phase_seconds": rows[:, :phases],
            "collective_calls": calls.astype(np.int64),
            "collective_bytes": payload.astype(np.int64),
            "collective_seconds": seconds,
            "round_seconds": own[0, 0],
            "cpu_seconds": own[:, 1],
            "executed_flops": own[:, 2].astype(np.int64),
            "peak_host_bytes": own[:, 3].astype(np.int64),
            "peak_device_bytes": own[:, 4].astype(np.int64),
            **{f"{name}_seconds": own[:, 5 + 2 * place] for place, name in enumerate(self._steps)},
            **{
                f"{name}_bytes": own[:, 6 + 2 * place].astype(np.int64)
                for place, name in enumerate(self._steps)
            },
            **self._joules.table(own[:, 5 + 2 * len(self._steps) :]),
        }


def _peak_memory() -> list[float]:
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = torch.cuda.memory_stats_as_nested_dict()  # max_memory_allocated() sorts all figures first
    device = found["allocated_bytes"]["all"]["peak"] if found else 0  # nothing without a GPU in use
    return [float(host), float(device)]
