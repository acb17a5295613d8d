"""Step 8 of a round: the new models are scored, and every rank's numbers go to rank 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation
from fedmpi.client.states import States
from fedmpi.client.training import LOSS_UNIT, MOST
from fedmpi.comm.world import World
from fedmpi.exchange.messages import EVALUATION, ClientTable, Floats, Gathered, Ints
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.totals import Totals
from fedmpi.kernels.vectors import digest
from fedmpi.models.outcome import Evaluation

_EVALUATED, _DIGEST = EVALUATION.index("evaluated"), EVALUATION.index("digest_high")

COUNTS = 6
"""Validation and test examples, sums of their losses in `LOSS_UNIT`, right predictions of both."""


class Evaluator:
    """Scores this rank's clients and gathers all scores on rank 0.

    Attributes
    ----------
    task : Task
        What travels of single examples.
    lost : int
        Client whose scores were not finite in the last round, else -1; rank 0 only.
    last_round : int
        With which the run ends, 0-based; it is always evaluated.
    totals : list of int or None
        The last round's `COUNTS`, summed over the clients that were evaluated; rank 0 only.

    Parameters
    ----------
    case, world, federation, states, meter
        Of the run.
    counts : Totals or None
        Adds counts of clients where no single value is recorded.
    """

    def __init__(
        self,
        case: Case,
        world: World,
        federation: Federation,
        states: States,
        meter: Meter,
        counts: Totals | None,
    ) -> None:
        self._case, self._world, self._states, self._meter = case, world, states, meter
        self.task = federation.task
        splits = federation.partition.clients
        held_out = np.array([[len(split.val), len(split.test)] for split in splits], np.int64)
        self._held_out = held_out if self.task.metrics[0].held_out else np.zeros_like(held_out)
        self._table = ClientTable(
            world.collectives, states.hosts, EVALUATION, header=meter.width, flags=self.task.lengths
        )
        self._counts = counts
        self.totals: list[int] | None = None
        self.lost, self.last_round = -1, case.rounds - 1

    def run(self, round: int, participants: Ints) -> Gathered | None:
        """Score the new models; return every client's scores and every rank's meter on rank 0."""
        rows, single, outcomes = self._score(round, participants)
        self._sum(round, participants, rows, outcomes)
        self._world.collectives.count("Gatherv", self._table.nbytes(self._world.rank))
        header = np.zeros(self._meter.width) if self._world.is_root else self._meter.snapshot()
        with self._meter.phase("wait"):
            closing = self._table.gather(header, rows, single, "evaluation", patient=True, counted=True)
        if closing is not None:
            closing.headers[0] = self._meter.snapshot()  # the round lasts until here
        self.lost = -1 if closing is None else self._first_lost(closing)
        return closing

    def _score(
        self, round: int, participants: Ints
    ) -> tuple[Floats, npt.NDArray[np.uint8], dict[int, Evaluation]]:
        """Score the new models and digest every hosted client's parameters.

        Returns a row for every client, what travels of their graphs, and what was found of each that was
        scored.
        """
        due = self.is_due(round)
        clients, chosen = self._states.clients, self.chosen(participants)
        rows = np.full((len(clients), len(EVALUATION)), np.nan)
        rows[:, _EVALUATED] = 0.0
        with self._meter.phase("evaluate"):
            outcomes: dict[int, Evaluation] = {}
            groups, digests = self._states.groups, {}
            evaluations = [group.evaluate(chosen) for group in groups] if due else ()
            parameters = [group.models() for group in groups]  # on their way before anything is awaited
            for evaluation in evaluations:
                outcomes.update(evaluation())
            for models in parameters:
                digests.update({number: _digest(row) for number, row in models().items()})
            for place, number in enumerate(clients):
                if number in outcomes:
                    rows[place, :_DIGEST] = _row(outcomes[number])
                    self._meter.executed_flops += outcomes[number].executed_flops
                    if (best := clients[number].best) is not None:
                        best.consider(round, outcomes[number].val, clients[number].evaluated)
                rows[place, _DIGEST:] = digests[number]
        single = [self.task.pack(number, outcomes.get(number)) for number in clients]
        return rows, np.concatenate([np.zeros(0, np.uint8), *single]), outcomes

    def chosen(self, participants: Ints) -> set[int]:
        """Return the clients that are evaluated: those hosted here, or the participants, int64 [k]."""
        everybody = self._case.evaluation.clients == "all"
        return set(self._states.clients) if everybody else set(participants.tolist())

    def is_due(self, round: int) -> bool:
        """Return whether clients are evaluated in a round."""
        return (round + 1) % self._case.evaluation.every == 0 or round == self.last_round

    def _sum(self, round: int, participants: Ints, rows: Floats, outcomes: Mapping[int, Evaluation]) -> None:
        """Sum the hosted clients' scores with the others', and take them out of the rows that travel.

        Only that a client's losses are not finite stays: it ends the run. Where values of single clients are
        recorded, nothing is summed.

        Parameters
        ----------
        round : int
        participants : int64 [k]
        rows : float64 [hosted clients, columns]
            Changed in place.
        outcomes : mapping of int to Evaluation
            Of the hosted clients that were scored.
        """
        if self._counts is None:
            return
        found = {}
        for row, number in zip(rows, self._states.clients, strict=True):
            row[:_EVALUATED], row[_DIGEST:] = 0.0, 0.0
            if number in outcomes:
                parts = outcomes[number].val, outcomes[number].test
                losses = [part.loss_sum / LOSS_UNIT for part in parts]
                found[number] = [*(part.weight for part in parts), *losses, *(part.correct for part in parts)]
                if not all(loss < MOST for loss in losses):  # no sum can hold it: the run has diverged
                    row[_EVALUATED] = -1.0
        self.totals = None
        if self.is_due(round):
            everybody = self._case.evaluation.clients == "all"
            clients = np.arange(len(self._held_out)) if everybody else participants
            with self._meter.phase("communicate"):
                self.totals = self._counts.sums(clients, found)

    def _first_lost(self, closing: Gathered) -> int:
        """Return the first client that was scored and has no finite loss, or vector; -1 if there is none.

        Where a client has no graph to score, there is no loss to be lost.
        """
        losses = np.stack([closing["val_loss"], closing["test_loss"]], axis=1)
        total = np.where(self._held_out > 0, losses, 0.0).sum(axis=1)
        lost = (closing["evaluated"] == 1.0) & ~np.isfinite(total)
        clients = np.flatnonzero(lost | (closing["evaluated"] < 0.0))
        return int(clients[0]) if len(clients) else -1


def scores_of(evaluation: Evaluation) -> list[float]:
    """Return loss and accuracy of validation, and of test, as `EVALUATION` begins."""
    parts = evaluation.val, evaluation.test
    return [score for part in parts for score in (part.mean_loss, part.accuracy)]


def _row(evaluation: Evaluation) -> list[float]:
    """Return scores, FLOPs, and 1, or -1 where a vector is not finite."""
    broken = evaluation.vectors is not None and not np.isfinite(evaluation.vectors).all()
    return [*scores_of(evaluation), evaluation.model_flops, -1.0 if broken else 1.0]


def _digest(parameters: npt.NDArray[np.float32]) -> tuple[int, int]:
    """Return a 64-bit hash of a client's parameters as two 32-bit halves, exact in float64."""
    return divmod(int(digest(parameters.view(np.uint32))), 2**32)
