"""Counters of energy, read by one rank of each node, so that no node counts twice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch

from fedmpi import energy
from fedmpi.case.schema import Case
from fedmpi.comm.world import World
from fedmpi.energy import Counters
from fedmpi.store.schema import DEVICE_ENERGY, HOST_ENERGY, Field


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
