"""Deltas to group models: steps 5 and 7 of a round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.comm.collectives import Collectives
from fedmpi.compression.base import Bytes
from fedmpi.exchange.aggregation import (
    Aggregation,
    Buffers,
    Floats,
    Groups,
    Ints,
    Weights,
    gather_rows,
    travelling,
)
from fedmpi.exchange.down_link import DownLink
from fedmpi.programs.hooks import Hooks


@dataclass(frozen=True)
class RoundPlan:
    """The server's decisions of a round, sent to every rank in one small broadcast.

    Attributes
    ----------
    group : int64 [clients]
        Group of each client.
    exponent : int64 [clients]
        Largest exponent of the weighted deltas of group g at place g.
    marks : int64 [clients]
        1 at the places of a request; without one, at place g if rank 0 moves the model of group g itself.
    failed_client : int
        First client whose result is not finite; -1 when all are.
    lost_client : int
        The same for the scores on the models of the round before.
    checkpoint : bool
        Whether the round ends with a checkpoint.
    stop : bool
        Whether a signal ends the run after this round.
    ended : bool
        Whether this round is the last, because scores no longer rise.
    request : int
        What is to be answered before the round goes on (`fedmpi.exchange.planning`); 0: nothing.
    weights, divisor : float64 [clients] or None
        Of algorithms that weigh by reports: weight of each participant, and at place g what the sum of
        group g's weighted deltas is divided by.
    steps : int64 [clients] or None
        The `Step` before which each client drops out, which every rank knows; by default nobody does.
    """

    group: Ints
    exponent: Ints
    marks: Ints
    failed_client: int
    lost_client: int
    checkpoint: bool
    stop: bool
    ended: bool = False
    request: int = 0
    weights: Floats | None = None
    divisor: Floats | None = None
    steps: Ints | None = None

    @staticmethod
    def size(num_clients: int, *, weighs: bool) -> int:
        """Return the elements of a packed plan."""
        return (5 if weighs else 3) * num_clients + 6

    def pack(self) -> Ints:
        """Return the plan as one int64 vector [`size`]."""
        ends = [int(self.checkpoint), int(self.stop), int(self.ended)]
        flags = [self.failed_client, self.lost_client, *ends, self.request]
        whole = [self.group, self.exponent, self.marks, np.array(flags, np.int64)]
        if self.weights is not None and self.divisor is not None:
            whole = [self.weights.view(np.int64), self.divisor.view(np.int64), *whole]
        return np.concatenate(whole)

    @classmethod
    def unpack(cls, message: Ints, num_clients: int) -> RoundPlan:
        """Return the plan that `pack` made a vector of."""
        cut = len(message) - cls.size(num_clients, weighs=False)
        weights, divisor = message[:cut].view(np.float64).reshape(2, -1) if cut else (None, None)
        group, exponent, marks, flags = np.split(message[cut:], num_clients * np.arange(1, 4))
        failed, lost, checkpoint, stop, ended, request = flags.tolist()
        due = bool(checkpoint), bool(stop), bool(ended)
        return cls(group, exponent, marks, failed, lost, *due, request, weights, divisor)


@dataclass(eq=False)
class Exchange:
    """Group models on the ranks that need them, and their updates.

    A group whose members live on several ranks is updated on rank 0, one on a single rank there, unless
    the algorithm is `central`, or the way down is compressed. New models, or their packed changes, go once to
    each rank that hosts members.

    Attributes
    ----------
    on_device : bool
        Whether updates stay on the device until they are summed over ranks.
    models : dict of int to float32 [shared]
        Model of each group that this rank hosts members of; rank 0 has all that it updates.
    survivors : dict of int to int
        Updates behind the move of each group with participants; 0: it has none, and its model stays.
    """

    collectives: Collectives
    hosts: Ints
    aggregation: Aggregation
    algorithm: Hooks
    size: int
    trained: int
    buffers: Buffers
    on_mean: Callable[[int, Floats], Floats] = lambda group, mean: mean
    down: DownLink | None = None
    on_device: bool = False
    models: dict[int, Delta] = field(default_factory=dict)
    survivors: dict[int, int] = field(default_factory=dict)
    _packed: dict[int, Bytes] = field(default_factory=dict)

    def begin(self, group: Ints, initial: Row, clients: Collection[int]) -> None:
        """Begin with one model for all; `clients` are those that this rank hosts."""
        mine = range(len(group)) if self.collectives.is_root else clients
        self.models = {int(group[number]): initial.copy() for number in mine}

    def run(
        self,
        plan: RoundPlan,
        participants: Ints,
        weights: Weights,
        deltas: Mapping[int, Delta],
        moves: Mapping[int, tuple[Floats, int]],
    ) -> None:
        """Average the participants' deltas (or models) by group; update `models`.

        Parameters
        ----------
        plan : RoundPlan
        participants : int64 [k]
        weights : int64 or float64 [clients]
        deltas : mapping of client to float32 [shared]
            Of the participants that this rank hosts.
        moves : mapping of int to (float64 [shared], int)
            On rank 0, what the models of the marked groups move by, and the updates behind it.
        """
        updaters = self._updaters(plan.group, participants)
        summed = {group: rank for group, rank in updaters.items() if not plan.marks[group]}
        groups = Groups(plan.group, plan.exponent, summed, plan.divisor, plan.steps)
        self.survivors = {group: len(groups.members(group, participants)) for group in updaters}
        means: dict[int, Floats] = {}
        if summed:
            means = self.aggregation.means(groups, participants, weights, deltas)
            self.survivors |= self.aggregation.survivors
        for group, mean in means.items():
            mean = self.on_mean(group, mean)
            if plan.weights is not None:  # running statistics move by their weighted mean
                own = plan.weights[groups.members(group, participants)]
                mean[self.trained :] *= groups.total(group, own) / own.sum()
            self._update(group, mean, self.survivors[group])
        for group, (step, count) in moves.items():
            self._update(group, step, count)
        needed = [group for group in travelling(plan.group, updaters, self.hosts) if self.survivors[group]]
        if needed:
            self._distribute(needed, plan)

    def restore(self, group: Ints, models: dict[int, Row]) -> None:
        """Begin with the models of the groups that this rank hosts members of (a collective call).

        Rank 0 gets those that it updates from the rank of each group's first member; none where a round
        makes new ones of the participants' models alone.
        """
        self.models = {**models}
        if self.algorithm.averages_models:
            return
        everybody = np.arange(len(group))
        needed = travelling(group, self._updaters(group, everybody), self.hosts)
        if not needed:
            return
        first = np.array([np.argmax(group == g) for g in needed], np.int64)
        held = {int(n): models[int(group[n])] for n in first if int(group[n]) in models}
        rows = gather_rows(self.collectives, self.hosts, first, held, self.size) or {}
        for number, model in rows.items():
            self.models[int(group[number])] = model

    def _updaters(self, group: Ints, participants: Ints) -> dict[int, int]:
        """Return the rank that updates each group with participants."""
        updaters = {}
        for number in np.unique(group[participants]).tolist():
            hosts = self.hosts[group == number]
            needed = self.algorithm.central or self.aggregation.central or self.down is not None
            central = needed or (self.aggregation.secret and len(hosts) > 1)
            updaters[number] = 0 if central or (hosts != hosts[0]).any() else int(hosts[0])
        return updaters

    def _update(self, group: int, mean: Floats, num_clients: int) -> None:
        """Set a group's model from the mean of its members' updates, or of their models."""
        present = np.zeros(self.size, np.float32)
        if not self.algorithm.averages_models:
            present = on_host(self.models[group])
        model = self.algorithm.update(present, mean, num_clients)
        if self.down is not None:
            round = self.algorithm.where.round
            self._packed[group] = self.down.pack(round, group, present, model)
            model = self.down.moved(round, group, present, self._packed[group])
        self.models[group] = model

    def regroup(self, before: Ints, after: Ints) -> None:
        """Copy the model of a split group to its parts."""
        if self.algorithm.averages_models:
            return
        for client in np.flatnonzero(before != after):
            origin, group = int(before[client]), int(after[client])
            if origin in self.models and group not in self.models:
                self.models[group] = _copy(self.models[origin])
                if self.down is not None:
                    self.down.regroup(origin, group)

    def _distribute(self, groups: list[int], plan: RoundPlan) -> None:
        """Send each new row once to the ranks that host members: one Bcast if all need all, else Scatterv."""
        needed = [
            [g for g in groups if np.any(self.hosts[plan.group == g] == rank)]
            for rank in range(self.collectives.size)
        ]
        mine, is_root = needed[self.collectives.rank], self.collectives.is_root
        blocking, whole, place = self.buffers.blocking, None, None
        travels: Mapping[int, Delta | Bytes] = self.models if self.down is None else self._packed
        size, dtype = (self.size, np.float32) if self.down is None else (self.down.nbytes, np.uint8)
        if all(rows == groups for rows in needed[1:]):
            nothing = np.empty(size, dtype)
            ready = self.buffers.ready([travels[g] if is_root else nothing for g in groups])
            rows = self.collectives.bcast(ready, blocking=blocking, kind="models")
            mine = groups
        else:
            if is_root:
                whole = np.concatenate([travels[g] for rows in needed for g in rows])
            if self.buffers.device is not None:
                empty = torch.empty(len(mine) * size, device=self.buffers.device)
                place = self.buffers.ready([empty])[0]
            counts = [len(rows) * size for rows in needed]
            rows = self.collectives.scatterv(whole, counts, dtype, place, blocking=blocking, kind="models")
        for group, row in zip(mine, rows.reshape(len(mine), size), strict=True):
            if self.down is None:
                self.models[group] = _copy(row)
            elif not is_root:
                round, present = self.algorithm.where.round, on_host(self.models[group])
                self.models[group] = self.down.moved(round, group, present, row)


def _copy(row: Delta) -> Delta:
    return row.clone() if isinstance(row, Tensor) else row.copy()
