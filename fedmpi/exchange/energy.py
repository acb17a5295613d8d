"""Energy of a run and of its phases, read by one rank of each node, so that no node counts twice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi import energy
from fedmpi.case.schema import Case
from fedmpi.comm.world import World
from fedmpi.energy import Counters
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


class PhaseEnergy:
    """Joules of a round and of its phases: adds up what these use since the last row.

    Parameters
    ----------
    energy : Energy or None
        None: nothing is recorded.
    """

    def __init__(self, energy: Energy | None) -> None:
        self._of_host = energy is not None and energy.of_host
        self._of_devices = energy is not None and energy.of_devices
        reads = energy is not None and energy.reads
        self._host = energy.host if energy is not None and reads and self._of_host else None
        self._devices = energy.devices if energy is not None and reads and self._of_devices else None
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._held = 0.0, 0.0
        self.restart()

    @property
    def width(self) -> int:
        """Numbers of a row, the same on all ranks."""
        return (1 + len(PHASES)) * self._of_host + self._of_devices

    def restart(self) -> None:
        """Let the row start now, with what was used before `hold`."""
        self._seen = self.host() - self._held[0], self._device() - self._held[1]
        self._held = 0.0, 0.0

    def hold(self) -> None:
        """Leave out of the row what is used from now until `restart`."""
        self._held = self.host() - self._seen[0], self._device() - self._seen[1]

    def host(self) -> float:
        """Return the counter of processors and memory; NaN where this rank does not read it."""
        return self._host.joules() if self._host is not None else np.nan

    def _device(self) -> float:
        return self._devices.joules() if self._devices is not None else np.nan

    def add(self, phase: str, around: str, since: float) -> None:
        """Add what was used since the counter stood at `since` to a phase; take it from the phase around."""
        if self._host is None:
            return
        used = self.host() - since
        self._phases[phase] += used
        if around:
            self._phases[around] -= used

    def row(self) -> Floats:
        """Return the row [width] that ends here and start the next."""
        now = self.host(), self._device()
        host, device = (end - begin for end, begin in zip(now, self._seen, strict=True))
        phases = list(self._phases.values()) if self._host is not None else [np.nan] * len(PHASES)
        self._seen, self._phases = now, dict.fromkeys(PHASES, 0.0)
        return np.array(
            [*([host, *phases] if self._of_host else []), *([device] if self._of_devices else [])]
        )

    def table(self, rows: Floats) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of all ranks, [ranks, width], as the record's measurement fields."""
        found: dict[str, npt.NDArray[Any]] = {}
        if self._of_host:
            found |= {"host_joules": rows[:, 0], "phase_joules": rows[:, 1 : 1 + len(PHASES)]}
        return found | ({"device_joules": rows[:, -1]} if self._of_devices else {})


def find(case: Case, world: World) -> Energy:
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
