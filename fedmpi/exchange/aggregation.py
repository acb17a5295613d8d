"""From the participants' updates to the means of their groups: step 5 of a round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.reductions import ReductionOptions
from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.pieces import gather

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Weights = Ints | Floats
Means = dict[int, Floats]
Deltas = Mapping[int, Delta]


@dataclass(frozen=True)
class Groups:
    """Groups whose means are wanted; the same on every rank.

    Attributes
    ----------
    group : int64 [clients]
        Group of each client.
    exponent : int64 [clients]
        Largest exponent of the weighted deltas of group g at place g.
    updater : dict of int to int
        Rank that needs the mean of each group; these groups have participants.
    divisor : float64 [clients] or None
        What the sum of group g is divided by, at place g; by default the sum of its weights.
    steps : int64 [clients] or None
        The `Step` before which each client drops out; by default nobody does.
    """

    group: Ints
    exponent: Ints
    updater: Mapping[int, int]
    divisor: Floats | None = None
    steps: Ints | None = None

    def members(self, group: int, participants: Ints) -> Ints:
        """Return a group's participants, ascending."""
        members: Ints = participants[self.group[participants] == group]
        return members

    def survivors(self, group: int, participants: Ints) -> Ints:
        """Return the participants of a group that upload their updates, ascending."""
        members = self.members(group, participants)
        return members if self.steps is None else members[self.steps[members] > Step.UPLOAD]

    def total(self, group: int, weights: Weights) -> float:
        """Return what a group's sum is divided by; `weights` are those of its participants."""
        return int(weights.sum()) if self.divisor is None else float(self.divisor[group])


def travelling(group: Ints, updater: Mapping[int, int], hosts: Ints) -> list[int]:
    """Return the groups with members on other ranks than the one that updates them.

    `group` and `hosts` are int64 [clients], `updater` the rank by group.
    """
    return [g for g, rank in updater.items() if (hosts[group == g] != rank).any()]


Share = Callable[[int, reductions.Fixed32], npt.NDArray[np.int32]]
"""Returns what a participant adds to its summand of a sum, int32 [shared]."""


class Aggregation(Protocol):
    """Turns the participants' updates into means; a run uses one object of this protocol.

    Its collectives count their bytes; time that is not communication belongs to phases of its own.

    Attributes
    ----------
    secret : bool
        Whether the server must not see a single client's update, even where one rank hosts the whole group.
    central : bool
        Whether rank 0 needs the means of all groups.
    survivors : dict of int to int
        Updates in the mean of each group of the last call, on every rank; 0: the group has no mean.
    """

    secret: bool
    central: bool

    @property
    def survivors(self) -> dict[int, int]:
        """See above."""

    def means(self, groups: Groups, participants: Ints, weights: Weights, deltas: Deltas) -> Means:
        """Return the means of the groups that this rank updates, float64 [shared] each (a collective call).

        Parameters
        ----------
        groups : Groups
        participants : int64 [k]
        weights : int64 or float64 [clients]
        deltas : mapping of client to float32 [shared or more]
            Of the participants that this rank hosts; elements behind those of the means are left out.
        """


@dataclass(frozen=True)
class Buffers:
    """What MPI is handed.

    Attributes
    ----------
    device : torch.device or None
        Where updates and models stay on their way to MPI; None: in host memory, as on rank 0 always.
    blocking : bool
        Whether all ranks use blocking calls: some GPU-aware MPIs take device memory in these only.
    """

    device: torch.device | None = None
    blocking: bool = False

    def ready(self, rows: Sequence[Any]) -> Any:
        """Return rows stacked where MPI shall find them, the device's work on them done."""
        if self.device is None:
            return np.stack(rows)
        stacked = torch.stack([torch.as_tensor(row, device=self.device) for row in rows])
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()
        return stacked


@dataclass(eq=False)
class Plain:
    """Weighted means by the case's reduction.

    Groups with members on other ranks than the one that updates them: one `Reduce` of all their sums.
    The others are summed on their rank, by the same arithmetic.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    options : ReductionOptions
    size : int
        Elements of a mean.
    buffers : Buffers
    noise : Share, optional
        With "fixed32".
    """

    collectives: Collectives
    hosts: Ints
    options: ReductionOptions
    size: int
    buffers: Buffers
    noise: Share | None = None
    survivors: dict[int, int] = field(default_factory=dict)

    secret = False
    central = False

    def means(self, groups: Groups, participants: Ints, weights: Weights, deltas: Deltas) -> Means:
        """See `Aggregation`; a group of which no update is left has no mean."""

        def summed(group: int) -> tuple[Callable[[Any], Floats], Any]:
            members, left = groups.members(group, participants), groups.survivors(group, participants)
            total = groups.total(group, weights[members])
            exponent = int(groups.exponent[group])
            clip = getattr(self.options, "clip", None)
            reduction = reductions.make(self.options.name, len(members), exponent, total, clip)
            kept = None if len(left) == len(members) else groups.total(group, weights[left])
            return partial(reduction.decode, weight=kept), self._sum(reduction, left, weights, deltas)

        self.survivors = {group: len(groups.survivors(group, participants)) for group in groups.updater}
        left = {group: rank for group, rank in groups.updater.items() if self.survivors[group]}
        means: Means = {}
        spread = travelling(groups.group, left, self.hosts)
        if spread:
            decoders, sums = zip(*map(summed, spread), strict=True)
            ready = self.buffers.ready(sums)
            totals = self.collectives.reduce(ready, blocking=self.buffers.blocking, kind="sums")
            if totals is not None:
                for group, decode, total in zip(spread, decoders, totals, strict=True):
                    means[group] = decode(total)
        for group, rank in left.items():
            if rank == self.collectives.rank and group not in spread:
                decode, total = summed(group)
                means[group] = decode(on_host(total))
        return means

    def _sum(self, reduction: reductions.Reduction, members: Ints, weights: Weights, deltas: Deltas) -> Any:
        """Return this rank's share of a group's sum."""
        total: Any = np.zeros(self.size, reduction.dtype)
        if self.buffers.device is not None:
            total = torch.from_numpy(total).to(self.buffers.device)
        for member in members:
            if int(member) in deltas:
                delta, weight = deltas[int(member)][: self.size], weights[member].item()
                self.collectives.note("update", delta, client=int(member))
                if isinstance(delta, Tensor):
                    total += reduction.encode_tensor(delta, weight)
                else:
                    reduction.add(delta, weight, total)
                if self.noise is not None and isinstance(reduction, reductions.Fixed32):
                    share = self.noise(int(member), reduction)
                    total += torch.from_numpy(share).to(total.device) if isinstance(total, Tensor) else share
        return total


def gather_rows(
    collectives: Collectives, hosts: Ints, clients: Ints, deltas: Deltas, size: int
) -> dict[int, Row] | None:
    """Return the updates of some clients on rank 0, in one `Gatherv`; None elsewhere (a collective call).

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    clients : int64 [k]
    deltas : mapping of client to float32 [size or more]
        Of those that this rank hosts, at least.
    size : int
        Elements of an update that travel.
    """
    held = [clients[hosts[clients] == rank].tolist() for rank in range(collectives.size)]
    own = {client: on_host(deltas[client])[:size] for client in held[collectives.rank]}
    return gather(collectives, held, lambda client: size, own, np.float32, kind="updates")


def scatter_rows(
    collectives: Collectives, hosts: Ints, rows: Row | None, shape: tuple[int, ...], place: str
) -> Row:
    """Return each rank's clients' rows, float32 [hosted, *shape], in one `Scatterv` (a collective call).

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    rows : float32 [clients, *shape] or None
        Read on rank 0 only.
    shape : tuple of int
        Of a row.
    place : str
        Point of the round.
    """
    counts = (np.bincount(hosts, minlength=collectives.size) * math.prod(shape)).tolist()
    whole = None if rows is None else rows[np.argsort(hosts, kind="stable")].reshape(-1)
    mine: Row = collectives.scatterv(whole, counts, np.float32, place=place)
    return mine.reshape(-1, *shape)
