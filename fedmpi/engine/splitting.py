"""Groups that split: between the plan of a round and its averages (step 6 of docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import ReductionOptions
from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.engine.capability_hooks import Splits
from fedmpi.engine.exchange import RoundPlan

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Row = npt.NDArray[np.float32]


@dataclass
class Findings:
    """What rank 0 learned of a round's groups, for the record.

    Attributes
    ----------
    delta_mean : dict of int to float
        Norm of the mean update of each group that might split.
    divided : list of (members, weights)
        Clients of each group that split, and the weights [k, k] by which.
    """

    delta_mean: dict[int, float] = field(default_factory=dict)
    divided: list[tuple[Ints, Floats]] = field(default_factory=list)


class Splitter:
    """Finds out which candidates are to split, and splits them.

    The means come from one `Reduce` of the candidates' sums; one small `Bcast` says
    which split. Only then may updates travel (`Gatherv`), and a second `Bcast`
    brings the new groups. The averages that follow are those of any other round.
    """

    def __init__(
        self,
        collectives: Collectives,
        hosts: Ints,
        reduction: ReductionOptions,
        algorithm: Splits,
        samples: Ints,
        size: int,
    ) -> None:
        self._collectives, self._hosts, self._options = collectives, hosts, reduction
        self._algorithm, self._size = algorithm, size
        self._weights = samples if algorithm.criterion_is_weighted else np.ones_like(samples)

    def run(
        self, plan: RoundPlan, participants: Ints, deltas: Mapping[int, Row], exponents: Ints | None
    ) -> tuple[RoundPlan, Findings]:
        """Return the plan with the groups as they are after the splits.

        Parameters
        ----------
        plan : RoundPlan
        participants : int64 [k]
        deltas : mapping of client to float32 [shared]
            Of the participants that this rank hosts.
        exponents : int64 [clients] or None
            Exponent of each client's weighted delta; known on rank 0.
        """
        candidates = [int(group) for group in np.flatnonzero(plan.split_candidates)]
        findings = Findings()
        if not candidates:
            return plan, findings
        due = self._find_due(plan, candidates, participants, deltas, findings)
        if not due:
            return plan, findings
        rows = self._gather_rows(plan, due, participants, deltas)
        message = np.concatenate([plan.group, plan.exponent])
        if exponents is not None:
            group = self._split(plan, due, participants, rows, findings)
            message = np.concatenate([group, _largest(group, exponents, participants)])
        self._collectives.bcast(message)
        group, exponent = np.split(message, 2)
        return replace(plan, group=group, exponent=exponent), findings

    def _members(self, plan: RoundPlan, group: int, participants: Ints) -> Ints:
        members: Ints = participants[plan.group[participants] == group]
        return members

    def _find_due(
        self,
        plan: RoundPlan,
        candidates: list[int],
        participants: Ints,
        deltas: Mapping[int, Row],
        findings: Findings,
    ) -> list[int]:
        """Return the groups whose mean update is short enough, on every rank."""
        sums, makers = [], []
        for group in candidates:
            members = self._members(plan, group, participants)
            total = int(self._weights[members].sum())
            exponent = int(plan.exponent[group])
            maker = reductions.make(self._options.name, self._options.clip, len(members), exponent, total)
            held = {int(m): deltas[int(m)][: self._size] for m in members if int(m) in deltas}
            mine = [maker.encode(delta, int(self._weights[m])) for m, delta in held.items()]
            sums.append(np.sum([np.zeros(self._size, maker.dtype), *mine], axis=0, dtype=maker.dtype))
            makers.append(maker)
        totals = self._collectives.reduce(np.stack(sums))
        flags = np.zeros(len(candidates), np.int64)
        if totals is not None:
            for place, (group, maker) in enumerate(zip(candidates, makers, strict=True)):
                mean = maker.decode(totals[place])
                findings.delta_mean[group] = float(np.sqrt(np.sum(np.square(mean))))
                flags[place] = self._algorithm.should_split(findings.delta_mean[group])
        self._collectives.bcast(flags)
        return [group for group, flag in zip(candidates, flags, strict=True) if flag]

    def _gather_rows(
        self, plan: RoundPlan, due: list[int], participants: Ints, deltas: Mapping[int, Row]
    ) -> dict[int, Row]:
        """Bring the updates of the groups that are due to rank 0, if the algorithm wants them."""
        if not self._algorithm.wants_rows:
            return {}
        wanted = participants[np.isin(plan.group[participants], due)]
        held = [wanted[self._hosts[wanted] == rank] for rank in range(self._collectives.size)]
        mine = [deltas[int(client)][: self._size] for client in wanted if int(client) in deltas]
        part = np.concatenate([np.empty(0, np.float32), *mine])
        found = self._collectives.gatherv(part, [len(clients) * self._size for clients in held])
        if found is None:
            return {}
        rows = [row for piece in found for row in piece.reshape(-1, self._size)]
        return dict(zip(np.concatenate(held).tolist(), rows, strict=True))

    def _split(
        self, plan: RoundPlan, due: list[int], participants: Ints, rows: Mapping[int, Row], findings: Findings
    ) -> Ints:
        """Return the new group of each client; the first part of a group keeps its number."""
        group = plan.group.copy()
        for number in due:
            members = self._members(plan, number, participants)
            updates = [rows[int(client)] for client in members if int(client) in rows]
            table = np.stack(updates) if updates else np.empty((len(members), 0), np.float32)
            division = self._algorithm.split(members, table)
            findings.divided.append((members, division.weights))
            for part in division.parts[1:]:
                group[part] = group.max() + 1
        self._algorithm.after_splits()
        return group


def _largest(group: Ints, exponents: Ints, participants: Ints) -> Ints:
    """Return the largest exponent of each group's participants, by group number."""
    largest = np.full(len(group), reductions.ZERO_EXPONENT, np.int64)
    np.maximum.at(largest, group[participants], exponents[participants])
    return largest
