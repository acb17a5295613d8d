"""The report of a round on rank 0: what the record has of it, from what the ranks gathered and decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.states import States
from fedmpi.exchange import dropouts
from fedmpi.exchange.chain import Chain
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.messages import Gathered, Ints
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.preparation import Prepared
from fedmpi.exchange.server import Deciding
from fedmpi.programs.hooks import Hooks
from fedmpi.runs import rows as record_rows
from fedmpi.runs.evaluation import Evaluator
from fedmpi.store.schema import CLIENT_ID


@dataclass(frozen=True)
class RoundReport:
    """What rank 0 knows at the end of a round; arrays by field name, ready for the record.

    `embeddings` are kept beside it, in rounds that ask for them; `notes` are lines for the user.
    """

    round: int
    results: dict[str, npt.NDArray[Any]]
    measurements: dict[str, npt.NDArray[Any]]
    embeddings: dict[str, npt.NDArray[Any]]
    notes: tuple[str, ...] = ()


@dataclass
class Found:
    """What a round came to so far.

    Attributes
    ----------
    round : int
        0-based.
    participants, working : int64 [k]
        Those that were sampled, and of them those that trained.
    steps : int64 [clients] or None
        Step before which each client dropped out, where any may.
    sampled : int64 [places] or None
        Clients of a population in this round.
    trained, closing : Gathered or None
        The training and the evaluation table; on rank 0.
    totals : sequence of int or None
        Sums over participants, where no single client's counts are recorded.
    notes : tuple of str
        Lines for the user.
    """

    round: int
    participants: Ints
    working: Ints
    steps: Ints | None
    sampled: Ints | None
    trained: Gathered | None = None
    closing: Gathered | None = None
    totals: Sequence[int] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reporter:
    """Makes the reports of a run."""

    case: Case
    algorithm: Hooks
    states: States
    evaluator: Evaluator
    chain: Chain
    meter: Meter

    def report(
        self, found: Found, group: Ints, decided: Deciding | None, prepared: Prepared | None
    ) -> RoundReport | None:
        """Return a round as the record has it; None on other ranks, and where a client's scores are lost.

        Parameters
        ----------
        found : Found
        group : int64 [clients]
            Groups after the round.
        decided : Deciding or None
        prepared : Prepared or None
        """
        task, trained, closing = self.evaluator.task, found.trained, found.closing
        if trained is None or closing is None or decided is None or self.evaluator.lost >= 0:
            return None
        sent, down = self.chain.client_bytes if self.algorithm.communicates else (0, 0)
        traffic = sent + self.states.messages.nbytes, down + self.states.tells.nbytes
        results = record_rows.results(trained, closing, group, found.working, traffic)
        if found.steps is not None:
            late = found.steps[found.working] <= Step.UPLOAD
            results["client_bytes_up"][found.working[late]] -= sent
        if self.case.record == "full":
            results |= record_rows.by_client(task.fields, trained, closing)
        else:
            results |= record_rows.together(found.totals, self.evaluator.totals)
        with self.meter.phase("evaluate"):  # rank 0 alone; after the snapshot, so of the next round's row
            results |= task.rows(closing.flags)
        results |= self.chain.rows(found.round)
        results |= {} if found.sampled is None else {CLIENT_ID.name: found.sampled}
        if prepared is not None:
            prepared.add_to(results, found.round)
        self.algorithm.check_fields(decided.recorded)
        results |= decided.recorded
        if found.steps is not None:
            survivors = self.chain.exchange.survivors
            results |= dropouts.rows(found.steps, found.participants, group, survivors)
        measured = record_rows.measurements(trained, self.case.link, traffic)
        measured |= self.meter.table(closing.headers)
        kept = found.round + 1 in self.case.evaluation.embeddings
        embeddings = task.embeddings(closing.flags) if kept else {}
        return RoundReport(found.round, results, measured, embeddings, found.notes)
