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
from fedmpi.engine.whereabouts import Whereabouts
from fedmpi.store.schema import PHASES


class Meter:
    """Counts of this rank since the last snapshot.

    A snapshot closes a round's row: what comes after it (record, checkpoint and
    the time of the closing message itself) is in the next round's row.
    """

    width = len(PHASES) + 3 * len(NAMES) + 5

    def __init__(self, collectives: Collectives, where: Whereabouts) -> None:
        self._collectives, self._where = collectives, where
        self._phases = dict.fromkeys(PHASES, 0.0)
        self.executed_flops = 0
        self._cpu = time.process_time()
        self._round = time.perf_counter()
        self._seen = self._counters()

    def start_count(self) -> None:
        """Let the first round's counts start now."""
        self._seen = self._counters()

    def start_clock(self) -> None:
        """Let the first round's times start now; its counts hold what was sent before, the initial model."""
        self._cpu, self._round = time.process_time(), time.perf_counter()

    def _counters(self) -> npt.NDArray[np.float64]:
        c = self._collectives
        return np.concatenate([c.calls, c.payload_bytes, c.seconds]).astype(np.float64)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a phase, and take it from the phase around it."""
        start, before = time.perf_counter(), self._where.phase
        self._where.phase = name
        try:
            yield
        finally:
            self._where.phase = before
            spent = time.perf_counter() - start
            self._phases[name] += spent
            if before:
                self._phases[before] -= spent

    def snapshot(self) -> npt.NDArray[np.float64]:
        """Return the row [width] of the round that ends here and start the next."""
        now, cpu = self._counters(), time.process_time()
        end = time.perf_counter()
        own = [end - self._round, cpu - self._cpu, float(self.executed_flops)]
        row = np.concatenate([list(self._phases.values()), now - self._seen, own, _peak_memory()])
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._seen, self._cpu, self._round, self.executed_flops = now, cpu, end, 0
        return row

    @staticmethod
    def table(rows: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
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
        }


def _peak_memory() -> list[float]:
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    device = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]
    return [float(host), float(device)]
