"""Deltas to group models: steps 5 and 7 of a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import ReductionOptions
from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.engine.hooks import Hooks

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Weights = Ints | Floats
Row = npt.NDArray[np.float32]
Rows = Row | Tensor


@dataclass(frozen=True)
class RoundPlan:
    """What the server tells every rank in one small broadcast.

    Attributes
    ----------
    group : int64 [clients]
        Group of each client.
    exponent : int64 [clients]
        Largest exponent of the weighted deltas of group g at place g.
    split_candidates : int64 [clients]
        1 at place g if group g may split in this round.
    failed_client : int
        First client whose result is not finite; -1 when all are.
    lost_client : int
        The same for the scores on the models of the round before.
    checkpoint : bool
        Whether the round ends with a checkpoint.
    stop : bool
        Whether the run ends after this round.
    weights, divisor : float64 [clients] or None
        Of algorithms that weigh by reports: weight of each participant, and at place g what the sum of
        group g's weighted deltas is divided by.
    """

    group: Ints
    exponent: Ints
    split_candidates: Ints
    failed_client: int
    lost_client: int
    checkpoint: bool
    stop: bool
    weights: Floats | None = None
    divisor: Floats | None = None

    def pack(self) -> Ints:
        """Return the plan as one int64 vector [3 clients + 4], or with weights [5 clients + 4]."""
        flags = [self.failed_client, self.lost_client, int(self.checkpoint), int(self.stop)]
        whole = [self.group, self.exponent, self.split_candidates, np.array(flags, np.int64)]
        if self.weights is not None and self.divisor is not None:
            whole = [self.weights.view(np.int64), self.divisor.view(np.int64), *whole]
        return np.concatenate(whole)

    @classmethod
    def unpack(cls, message: Ints, num_clients: int) -> RoundPlan:
        """Return the plan that `pack` made a vector of."""
        cut = len(message) - (3 * num_clients + 4)
        weights, divisor = message[:cut].view(np.float64).reshape(2, -1) if cut else (None, None)
        message = message[cut:]
        group, exponent, candidates = message[:-4].reshape(3, -1)
        failed, lost, checkpoint, stop = message[-4:].tolist()
        return cls(group, exponent, candidates, failed, lost, bool(checkpoint), bool(stop), weights, divisor)

    def total(self, group: int, weights: Weights) -> float:
        """Return what the sum of a group's deltas is divided by; `weights` are those of its participants."""
        return int(weights.sum()) if self.divisor is None else float(self.divisor[group])


class Exchange:
    """Group models on the ranks that need them, and how they move on.

    A group whose members live on several ranks is summed by one integer `Reduce`
    and updated on rank 0; a group on one rank is summed and updated there, by the
    same arithmetic. New rows go once to each rank that hosts members.

    Attributes
    ----------
    models : dict of int to float32 [shared]
        Model of each group that this rank hosts members of; rank 0 has all that span ranks.
    device : torch.device or None
        Where deltas and models stay on their way to MPI; None: in host memory, as on rank 0 always.
    """

    def __init__(
        self,
        collectives: Collectives,
        rank: int,
        hosts: Ints,
        reduction: ReductionOptions,
        algorithm: Hooks,
        size: int,
        trained: int,
        models: dict[int, Rows],
        device: torch.device | None = None,
    ) -> None:
        self._collectives = collectives
        self._rank = rank
        self._hosts = hosts
        self._options, self._blocking = reduction, reduction.buffers == "device"
        self._algorithm = algorithm
        self._size, self._trained = size, trained
        self.models = models
        on_device = reduction.buffers == "device" and not collectives.is_root
        self.device = device if on_device else None

    @property
    def num_bytes(self) -> int:
        """Bytes of the shared parameters in single precision: a client's upload or download."""
        return 4 * self._size

    def run(self, plan: RoundPlan, participants: Ints, weights: Weights, deltas: Mapping[int, Rows]) -> None:
        """Average the participants' deltas (models, if the algorithm regroups) by group; update `models`.

        Parameters
        ----------
        plan : RoundPlan
        participants : int64 [k]
        weights : int64 or float64 [clients]
        deltas : mapping of client to float32 [shared]
            Of the participants that this rank hosts.
        """
        active = [int(group) for group in np.unique(plan.group[participants])]
        spans = {g: self._spans(plan.group == g) for g in active}
        needed = [g for g in active if spans[g] or self._hosts_alone(plan, g)]
        sums = {g: self._sum(plan, g, participants, weights, deltas) for g in needed}
        self._update_spanning([g for g in active if spans[g]], sums, plan, participants)
        for group in active:
            if not spans[group] and self._hosts_alone(plan, group):
                self._update(group, *sums[group], plan, participants)

    def _hosts_alone(self, plan: RoundPlan, group: int) -> bool:
        """Return whether this rank hosts a group that lives on one rank."""
        return bool(self._hosts[np.argmax(plan.group == group)] == self._rank)

    def _update(
        self, group: int, reduction: reductions.Reduction, total: Any, plan: RoundPlan, participants: Ints
    ) -> None:
        """Set a group's model from the sum of its members' updates, or of their models."""
        members = int((plan.group[participants] == group).sum())
        present = np.zeros(self._size, np.float32)
        if not self._algorithm.regroups:
            present = on_host(self.models[group])
        mean = reduction.decode(on_host(total))
        if plan.weights is not None:  # running statistics move by their weighted mean
            weights = plan.weights[participants[plan.group[participants] == group]]
            mean[self._trained :] *= plan.total(group, weights) / weights.sum()
        self.models[group] = self._algorithm.update(present, mean, members)

    def _spans(self, members: npt.NDArray[np.bool_]) -> bool:
        """Return whether a group's update runs on rank 0: it has members on several ranks, or must."""
        hosts = set(self._hosts[members].tolist())
        return len(hosts) > 1 or (self._algorithm.central and hosts != {0})

    def regroup(self, before: Ints, after: Ints) -> None:
        """Give the groups that came of a split the model of the group that they came from."""
        for client in np.flatnonzero(before != after):
            origin, group = int(before[client]), int(after[client])
            if origin in self.models and group not in self.models:
                self.models[group] = _copy(self.models[origin])

    def _sum(
        self, plan: RoundPlan, group: int, participants: Ints, weights: Weights, deltas: Mapping[int, Rows]
    ) -> tuple[reductions.Reduction, Any]:
        """Return the group's reduction and this rank's share of its sum."""
        members = participants[plan.group[participants] == group]
        options = self._options
        reduction = reductions.make(
            options.name,
            options.clip,
            len(members),
            int(plan.exponent[group]),
            plan.total(group, weights[members]),
        )
        total: Any = np.zeros(self._size, reduction.dtype)
        if self.device is not None:
            total = torch.from_numpy(total).to(self.device)
        for member in members:
            if int(member) in deltas:
                delta, weight = deltas[int(member)], weights[member].item()
                if isinstance(delta, Tensor):
                    total += reduction.encode_tensor(delta, weight)
                else:
                    reduction.add(delta, weight, total)
        return reduction, total

    def _update_spanning(
        self,
        groups: list[int],
        sums: Mapping[int, tuple[reductions.Reduction, Any]],
        plan: RoundPlan,
        participants: Ints,
    ) -> None:
        if not groups:
            return
        total = self._collectives.reduce(self._ready([sums[g][1] for g in groups]), blocking=self._blocking)
        if total is not None:
            for group, row in zip(groups, total, strict=True):
                self._update(group, sums[group][0], row, plan, participants)
        self._distribute(groups, plan)

    def _ready(self, rows: Sequence[Rows]) -> Any:
        """Return rows stacked where MPI shall find them, the device's work on them done."""
        if self.device is None:
            return np.stack(rows)
        stacked = torch.stack([torch.as_tensor(row, device=self.device) for row in rows])
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()
        return stacked

    def _distribute(self, groups: list[int], plan: RoundPlan) -> None:
        """Send each new row once to the ranks that host members: one Bcast if all need all, else Scatterv."""
        needed = [
            [g for g in groups if np.any(self._hosts[plan.group == g] == rank)]
            for rank in range(self._collectives.size)
        ]
        mine = needed[self._rank]
        if all(rows == groups for rows in needed[1:]):
            nothing = np.empty(self._size, np.float32)
            sent = [self.models[g] if self._collectives.is_root else nothing for g in groups]
            rows = self._collectives.bcast(self._ready(sent), blocking=self._blocking)
            mine = groups
        else:
            whole = None
            if self._collectives.is_root:
                whole = np.concatenate([self.models[g] for rows in needed for g in rows])
            counts = [len(rows) * self._size for rows in needed]
            place = None
            if self.device is not None:
                place = self._ready([torch.empty(counts[self._rank], device=self.device)])[0]
            rows = self._collectives.scatterv(whole, counts, np.float32, place, blocking=self._blocking)
            rows = rows.reshape(len(mine), self._size)
        for group, row in zip(mine, rows, strict=True):
            self.models[group] = _copy(row)


def on_host(row: Any) -> Any:
    """Return a row as a NumPy array, wherever it is."""
    return row.cpu().numpy() if isinstance(row, Tensor) else row


def _copy(row: Rows) -> Rows:
    return row.clone() if isinstance(row, Tensor) else row.copy()
