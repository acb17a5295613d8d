"""Groups that split: between the plan of a round and its averages (step 6 of docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.exchange.aggregation import Aggregation, Groups, Rows
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.programs.capability_hooks import Splits

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Row = npt.NDArray[np.float32]


@dataclass
class Findings:
    """Norms and splits of a round's groups, known on rank 0, for the record.

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
    """Evaluates the split criterion of the candidates, and splits those that meet it.

    Rank 0 gets the candidates' means; one small `Bcast` says which split. Only then may updates travel,
    and a second `Bcast` brings the new groups. The averages that follow are those of any other round.

    Parameters
    ----------
    collectives : Collectives
    aggregation : Aggregation
        Of the elements that the criterion is about.
    rows : Rows
        Of the same elements.
    algorithm : Splits
    samples : int64 [clients]
        Training graphs of each client.
    """

    def __init__(
        self,
        collectives: Collectives,
        aggregation: Aggregation,
        rows: Rows,
        algorithm: Splits,
        samples: Ints,
    ) -> None:
        self._collectives, self._aggregation, self._rows = collectives, aggregation, rows
        self._algorithm = algorithm
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
        candidates = dict.fromkeys(np.flatnonzero(plan.split_candidates).tolist(), 0)
        findings, groups = Findings(), Groups(plan.group, plan.exponent, candidates, steps=plan.steps)
        if not candidates:
            return plan, findings
        due = self._find_due(groups, participants, deltas, findings)
        if not due:
            return plan, findings
        rows: Mapping[int, Row] | None = {}
        if self._algorithm.wants_rows:
            rows = self._rows.gather(participants[np.isin(plan.group[participants], due)], deltas)
        message = np.concatenate([plan.group, plan.exponent])
        if exponents is not None and rows is not None:
            group = self._split(groups, due, participants, rows, findings)
            message = np.concatenate([group, _largest(group, exponents, participants)])
        self._collectives.bcast(message, kind="split")
        group, exponent = np.split(message, 2)
        return replace(plan, group=group, exponent=exponent), findings

    def _find_due(
        self,
        groups: Groups,
        participants: Ints,
        deltas: Mapping[int, Row],
        findings: Findings,
    ) -> list[int]:
        """Return the groups whose mean update is short enough, on every rank."""
        flags = np.zeros(len(groups.updater), np.int64)
        means = self._aggregation.means(groups, participants, self._weights, deltas)
        for place, group in enumerate(groups.updater):
            if group in means:
                findings.delta_mean[group] = float(np.sqrt(np.sum(np.square(means[group]))))
                flags[place] = self._algorithm.should_split(findings.delta_mean[group])
        self._collectives.bcast(flags, kind="split")
        return [group for group, flag in zip(groups.updater, flags, strict=True) if flag]

    def _split(
        self, groups: Groups, due: list[int], participants: Ints, rows: Mapping[int, Row], findings: Findings
    ) -> Ints:
        """Return the new group of each client; the first part of a group keeps its number."""
        group = groups.group.copy()
        for number in due:
            members = groups.members(number, participants)
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
