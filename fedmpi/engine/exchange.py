"""Deltas to group models: steps 5 and 7 of a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm
from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.engine.case import ReductionOptions

Ints = npt.NDArray[np.int64]
Row = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RoundPlan:
    """What the server tells every rank in one small broadcast.

    Attributes
    ----------
    group : int64 [clients]
        Group of each client.
    exponent : int64 [clients]
        Largest exponent of the weighted deltas of group g at place g.
    suspects : int64 [clients]
        1 at place g if group g may split in this round.
    failed_client : int
        First client whose result is not finite; -1 when all are.
    lost_client : int
        The same for the scores on the models of the round before.
    checkpoint : bool
        Whether the round ends with a checkpoint.
    stop : bool
        Whether the run ends after this round.
    """

    group: Ints
    exponent: Ints
    suspects: Ints
    failed_client: int
    lost_client: int
    checkpoint: bool
    stop: bool

    def pack(self) -> Ints:
        """Return the plan as one int64 vector [3 clients + 4]."""
        flags = [self.failed_client, self.lost_client, int(self.checkpoint), int(self.stop)]
        return np.concatenate([self.group, self.exponent, self.suspects, np.array(flags, np.int64)])

    @classmethod
    def unpack(cls, message: Ints) -> RoundPlan:
        """Return the plan that `pack` made a vector of."""
        group, exponent, suspects = message[:-4].reshape(3, -1)
        failed, lost, checkpoint, stop = message[-4:].tolist()
        return cls(group, exponent, suspects, failed, lost, bool(checkpoint), bool(stop))


class Exchange:
    """Group models on the ranks that need them, and how they move on.

    A group whose members live on several ranks is summed by one integer `Reduce`
    and updated on rank 0; a group on one rank is summed and updated there, by the
    same arithmetic. New rows go once to each rank that hosts members.

    Attributes
    ----------
    models : dict of int to float32 [shared]
        Model of each group that this rank hosts members of; rank 0 has all that span ranks.
    """

    def __init__(
        self,
        collectives: Collectives,
        rank: int,
        hosts: Ints,
        reduction: ReductionOptions,
        algorithm: Algorithm,
        size: int,
        models: dict[int, Row],
    ) -> None:
        self._collectives = collectives
        self._rank = rank
        self._hosts = hosts
        self._options = reduction
        self._algorithm = algorithm
        self._size = size
        self.models = models

    @property
    def num_bytes(self) -> int:
        """Bytes of the shared parameters in single precision: a client's upload or download."""
        return 4 * self._size

    def run(self, plan: RoundPlan, participants: Ints, weights: Ints, deltas: Mapping[int, Row]) -> None:
        """Average the participants' deltas group by group and update `models`.

        Parameters
        ----------
        plan : RoundPlan
        participants : int64 [k]
        weights : int64 [clients]
        deltas : mapping of client to float32 [shared]
            Of the participants that this rank hosts.
        """
        active = [int(group) for group in np.unique(plan.group[participants])]
        spans = {g: len(set(self._hosts[plan.group == g].tolist())) > 1 for g in active}
        needed = [g for g in active if spans[g] or g in self.models]
        sums = {g: self._sum(plan, g, participants, weights, deltas) for g in needed}
        self._update_spanning([g for g in active if spans[g]], sums, plan, participants)
        for group in active:
            if not spans[group] and self._hosts[np.argmax(plan.group == group)] == self._rank:
                reduction, total = sums[group]
                mean = reduction.decode(total)
                members = int((plan.group[participants] == group).sum())
                self.models[group] = self._algorithm.update(self.models[group], mean, members)

    def regroup(self, before: Ints, after: Ints) -> None:
        """Give the groups that came of a split the model of the group that they came from."""
        for client in np.flatnonzero(before != after):
            origin, group = int(before[client]), int(after[client])
            if origin in self.models and group not in self.models:
                self.models[group] = self.models[origin].copy()

    def _sum(
        self, plan: RoundPlan, group: int, participants: Ints, weights: Ints, deltas: Mapping[int, Row]
    ) -> tuple[reductions.Reduction, npt.NDArray[np.generic]]:
        """Return the group's reduction and this rank's share of its sum."""
        members = participants[plan.group[participants] == group]
        options = self._options
        reduction = reductions.make(
            options.name, options.clip, len(members), int(plan.exponent[group]), int(weights[members].sum())
        )
        total = np.zeros(self._size, reduction.dtype)
        for member in members:
            if int(member) in deltas:
                total += reduction.encode(deltas[int(member)], int(weights[member]))
        return reduction, total

    def _update_spanning(
        self,
        groups: list[int],
        sums: Mapping[int, tuple[reductions.Reduction, npt.NDArray[np.generic]]],
        plan: RoundPlan,
        participants: Ints,
    ) -> None:
        if not groups:
            return
        total = self._collectives.reduce(np.stack([sums[g][1] for g in groups]))
        if total is not None:
            for group, row in zip(groups, total, strict=True):
                mean = sums[group][0].decode(row)
                members = int((plan.group[participants] == group).sum())
                self.models[group] = self._algorithm.update(self.models[group], mean, members)
        self._distribute(groups, plan)

    def _distribute(self, groups: list[int], plan: RoundPlan) -> None:
        """Send each new row once to the ranks that host members: one Bcast if all need all, else Scatterv."""
        needed = [
            [g for g in groups if np.any(self._hosts[plan.group == g] == rank)]
            for rank in range(self._collectives.size)
        ]
        mine = needed[self._rank]
        if all(rows == groups for rows in needed[1:]):
            rows = np.stack([self.models[g] for g in groups])
            rows = self._collectives.bcast(rows)
            mine = groups
        else:
            whole = None
            if self._collectives.is_root:
                whole = np.concatenate([self.models[g] for rows in needed for g in rows])
            counts = [len(rows) * self._size for rows in needed]
            rows = self._collectives.scatterv(whole, counts, np.float32).reshape(len(mine), self._size)
        for group, row in zip(mine, rows, strict=True):
            self.models[group] = row.copy()
