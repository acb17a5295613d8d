"""Measurements of a rank in a round: seconds and joules by phase, FLOPs, calls, bytes, CPU, memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi import energy
from fedmpi.case.schema import Case
from fedmpi.comm.collectives import NAMES, Collectives
from fedmpi.comm.world import World
from fedmpi.energy import Counters
from fedmpi.programs.position import Position
from fedmpi.store.schema import DEVICE_ENERGY, HOST_ENERGY, PHASES, Field

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """The counters of this rank's node, and what the record holds of them.

    Attributes
    ----------
    host, devices : Counters
        Processors and memory; the GPUs that the node's ranks use.
    reads : bool
        Whether this rank reads them: the node's lowest that hosts clients, whose phases say most of what its
        node does; where none hosts any, its lowest.
    of_host, of_devices : bool
        Whether the record holds them, the same on all ranks.
    """

    host: Counters
    devices: Counters
    reads: bool
    of_host: bool
    of_devices: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the record."""
        return (*(HOST_ENERGY if self.of_host else ()), *(DEVICE_ENERGY if self.of_devices else ()))

    def recorded(self, names: Collection[str]) -> Energy:
        """Return what of it a record with these fields holds: one that was begun elsewhere may hold less."""
        held = [fields[0].name in names for fields in (HOST_ENERGY, DEVICE_ENERGY)]
        return replace(self, of_host=held[0], of_devices=held[1])

    def describe(self) -> dict[str, str]:
        """Return for the provenance what is counted on this node, or why nothing is."""
        of_devices = {"devices": self.devices.describe()} if self.devices.reason or self.devices else {}
        return {"host": self.host.describe(), **of_devices}


NOTHING = Energy(Counters(()), Counters(()), reads=False, of_host=False, of_devices=False)
"""Of a run that counts no energy."""


def find_energy(case: Case, world: World) -> Energy:
    """Return the counters there are; a collective call.

    The record of a run holds what any of its ranks can count when it begins.
    """
    host, devices = energy.host(), energy.gpus(_uuids(world)) if case.device == "cuda" else Counters(())
    workers = world.workers(shared=case.shared)
    hosting = [rank for rank in world.node_ranks if rank in workers]
    reads = world.rank == min(hosting or world.node_ranks)
    return Energy(host, devices, reads, world.any(bool(host)), world.any(bool(devices)))


def _uuids(world: World) -> list[str]:
    """Return the UUIDs of the GPUs that the ranks of this node use."""
    if not torch.cuda.is_available():
        return []
    used = min(torch.cuda.device_count(), len(world.node_ranks))
    return [f"GPU-{torch.cuda.get_device_properties(number).uuid}" for number in range(used)]


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
        self, collectives: Collectives, where: Position, steps: tuple[str, ...] = (), energy: Energy = NOTHING
    ) -> None:
        self._collectives, self._where = collectives, where
        self._of_host, self._of_devices = energy.of_host, energy.of_devices
        self._host = energy.host.joules if energy.reads and energy.of_host else _unread
        self._devices = energy.devices.joules if energy.reads and energy.of_devices else _unread
        self._phases = self._no_phases()
        self._steps = {name: [0.0, 0.0] for name in steps}
        self.steps_cpu = dict.fromkeys(steps, 0.0)
        self.executed_flops = 0
        self._before = np.zeros(4)
        self._start, self._seen = self._now(), self._counters()

    @property
    def width(self) -> int:
        """Numbers of a snapshot."""
        joules = (1 + len(PHASES)) * self._of_host + self._of_devices
        return len(PHASES) + 3 * len(NAMES) + 5 + 2 * len(self._steps) + joules

    def start_count(self) -> None:
        """Let the first round's counts start now."""
        self._seen = self._counters()

    @contextmanager
    def before_rounds(self, phase: str, *, counted: bool) -> Iterator[None]:
        """Add what is spent inside, before the clock starts, to a phase and to the first round's row.

        What is not counted is in no row.
        """
        start = self._now()
        with self.phase(phase):
            yield
        if counted:
            self._before = self._now() - start
        else:
            self._phases = self._no_phases()

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Have the times of the present row leave out what is spent inside."""
        start = self._now()
        yield
        self._start += self._now() - start

    def start_clock(self) -> None:
        """Let the first round's times start now; its counts hold what was sent before, the initial model."""
        self._start, self._before = self._now() - self._before, np.zeros(4)

    def _now(self) -> Floats:
        """Return seconds on the wall and of the CPU, and joules of the host and of the devices."""
        return np.array([time.perf_counter(), time.process_time(), self._host(), self._devices()])

    def _counters(self) -> Floats:
        c = self._collectives
        return np.concatenate([c.calls, c.payload_bytes, c.seconds]).astype(np.float64)

    def _no_phases(self) -> dict[str, list[float]]:
        """Return seconds and joules of phases that have taken none; NaN where this rank reads no joules."""
        joules = np.nan if self._host is _unread else 0.0
        return {name: [0.0, joules] for name in PHASES}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time and the joules spent inside to a phase, and take them from the phase around it."""
        start, joules, before = time.perf_counter(), self._host(), self._where.phase
        self._where.phase = name
        try:
            yield
        finally:
            self._where.phase = before
            seconds, joules = time.perf_counter() - start, self._host() - joules
            for phase, sign in ((name, 1.0), (before, -1.0)):
                if phase:
                    self._phases[phase][0] += sign * seconds
                    self._phases[phase][1] += sign * joules

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

    def snapshot(self) -> Floats:
        """Return the row [width] of the round that ends here and start the next."""
        counters, now = self._counters(), self._now()
        wall, cpu, host, device = now - self._start
        seconds, joules = np.array(list(self._phases.values())).T
        steps = [value for pair in self._steps.values() for value in pair]
        own = [wall, cpu, float(self.executed_flops), *_peak_memory(), *steps]
        own += [host, *joules] if self._of_host else []
        own += [device] if self._of_devices else []
        row = np.concatenate([seconds, counters - self._seen, own])
        self._phases = self._no_phases()
        self._steps = {name: [0.0, 0.0] for name in self._steps}
        self._seen, self._start, self.executed_flops = counters, now, 0
        return row

    def table(self, rows: Floats) -> dict[str, npt.NDArray[Any]]:
        """Return the snapshots of all ranks, [ranks, width], as the record's measurement fields."""
        phases, names = len(PHASES), len(NAMES)
        calls, payload, seconds, own = np.split(rows[:, phases:], [names, 2 * names, 3 * names], axis=1)
        places = dict(zip(self._steps, range(5, own.shape[1], 2), strict=False))
        found: dict[str, npt.NDArray[Any]] = {
            "phase_seconds": rows[:, :phases],
            "collective_calls": calls.astype(np.int64),
            "collective_bytes": payload.astype(np.int64),
            "collective_seconds": seconds,
            "round_seconds": own[0, 0],
            "cpu_seconds": own[:, 1],
            "executed_flops": own[:, 2].astype(np.int64),
            "peak_host_bytes": own[:, 3].astype(np.int64),
            "peak_device_bytes": own[:, 4].astype(np.int64),
            **{f"{name}_seconds": own[:, place] for name, place in places.items()},
            **{f"{name}_bytes": own[:, place + 1].astype(np.int64) for name, place in places.items()},
        }
        joules = own[:, 5 + 2 * len(self._steps) :]
        if self._of_host:
            found |= {"host_joules": joules[:, 0], "phase_joules": joules[:, 1 : 1 + phases]}
        if self._of_devices:
            found["device_joules"] = joules[:, -1]
        return found


def _unread() -> float:
    """Return what a counter says that this rank does not read."""
    return np.nan


def _peak_memory() -> list[float]:
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = torch.cuda.memory_stats_as_nested_dict()  # max_memory_allocated() sorts all figures first
    device = found["allocated_bytes"]["all"]["peak"] if found else 0  # nothing without a GPU in use
    return [float(host), float(device)]
