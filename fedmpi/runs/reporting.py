"""The report of a round on rank 0: what the record has of it, from what the ranks gathered and decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.states import States
from fedmpi.exchange import dropouts
from fedmpi.exchange.chain import Chain
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.preparation import Prepared
from fedmpi.programs.hooks import Hooks
from fedmpi.runs import rows as record_rows
from fedmpi.runs.evaluation import Evaluator
from fedmpi.store.schema import CLIENT_ID

Ints = npt.NDArray[np.int64]


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


@dataclass(frozen=True)
class Found:
    """What a round came to.

    Attributes
    ----------
    participants, working : int64 [k]
        Those that were sampled, and of them those that trained.
    group : int64 [clients]
        Groups after the round.
    trained, closing : Gathered
        The training and the evaluation table.
    steps : int64 [clients] or None
        Step before which each client dropped out, where any may.
    totals : sequence of int or None
        Sums over participants, where no single client's counts are recorded.
    sampled : int64 [places] or None
        Clients of a population in this round.
    recorded : dict of str to array
        What the algorithm decided to record.
    notes : tuple of str
    """

    participants: Ints
    working: Ints
    group: Ints
    trained: Gathered
    closing: Gathered
    steps: Ints | None
    totals: Sequence[int] | None
    sampled: Ints | None
    recorded: dict[str, npt.NDArray[Any]]
    notes: tuple[str, ...]


class Reporter:
    """Makes the reports of a run.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    states : States
    evaluator : Evaluator
    chain : Chain
    meter : Meter
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        states: States,
        evaluator: Evaluator,
        chain: Chain,
        meter: Meter,
    ) -> None:
        self._case, self._algorithm, self._states = case, algorithm, states
        self._exchange = chain.exchange
        self._evaluator, self._chain, self._meter = evaluator, chain, meter

    def report(self, round: int, found: Found, prepared: Prepared | None) -> RoundReport:
        """Return a round as the record has it."""
        task, closing = self._evaluator.task, found.closing
        sent, down = self._chain.client_bytes if self._algorithm.communicates else (0, 0)
        traffic = sent + self._states.messages.nbytes, down + self._states.tells.nbytes
        results = record_rows.results(found.trained, closing, found.group, found.working, traffic)
        if found.steps is not None:
            late = found.steps[found.working] <= Step.UPLOAD
            results["client_bytes_up"][found.working[late]] -= sent
        if self._case.record == "full":
            results |= record_rows.by_client(task.fields, found.trained, closing)
        else:
            results |= record_rows.together(found.totals, self._evaluator.totals)
        with self._meter.phase("evaluate"):  # rank 0 alone; after the snapshot, so of the next round's row
            results |= task.rows(closing.flags)
        results |= self._chain.rows(round)
        results |= {} if found.sampled is None else {CLIENT_ID.name: found.sampled}
        if prepared is not None:
            prepared.add_to(results, round)
        self._algorithm.check_fields(found.recorded)
        results |= found.recorded
        if found.steps is not None:
            survivors = self._exchange.survivors
            results |= dropouts.rows(found.steps, found.participants, found.group, survivors)
        measured = record_rows.measurements(found.trained, self._case.link, traffic)
        measured |= self._meter.table(closing.headers)
        kept = round + 1 in self._case.evaluation.embeddings
        embeddings = task.embeddings(closing.flags) if kept else {}
        return RoundReport(round, results, measured, embeddings, found.notes)
