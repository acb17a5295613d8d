"""The report of a round on rank 0: what the record has of it, from what the ranks gathered and decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case, LinkOptions
from fedmpi.client.training import LOSS_UNIT
from fedmpi.exchange import dropouts
from fedmpi.exchange.chain import Chain
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.messages import Floats, Gathered, Ints
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.preparation import Prepared
from fedmpi.exchange.schedule import Schedule
from fedmpi.exchange.server import Deciding
from fedmpi.programs.hooks import Hooks
from fedmpi.runs.evaluation import Evaluator
from fedmpi.store.schema import CLIENT_ID, Field

Rows = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class RoundReport:
    """What rank 0 knows at the end of a round; arrays by field name, ready for the record.

    `embeddings` are kept beside it, in rounds that ask for them; `notes` are lines for the user.
    """

    round: int
    results: Rows
    measurements: Rows
    embeddings: Rows
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
    further : dict of str to array or None
        Values of other fields; on rank 0.
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
    further: Rows | None = None


@dataclass(frozen=True)
class Reporter:
    """Makes the reports of a run."""

    case: Case
    algorithm: Hooks
    evaluator: Evaluator
    chain: Chain
    schedule: Schedule
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
        everybody = self.algorithm.communicates and self.chain.everybody_receives
        moved = [number for number, count in self.chain.exchange.survivors.items() if count]
        receives = np.isin(group, moved) if everybody else None
        results = _results(trained, closing, group, found.working, self.chain.traffic, receives)
        if found.steps is not None:
            late = found.steps[found.working] <= Step.UPLOAD
            results["client_bytes_up"][found.working[late]] -= self.chain.client_bytes[0]
        if self.case.record == "full":
            results |= _by_client(task.fields, trained, closing)
        else:
            results |= _together(found.totals, self.evaluator.totals)
        with self.meter.phase("evaluate"):  # rank 0 alone; after the snapshot, so of the next round's row
            results |= task.rows(closing.flags)
        results |= self.chain.rows(found.round) | self.schedule.rows() | (found.further or {})
        results |= {} if found.sampled is None else {CLIENT_ID.name: found.sampled}
        if prepared is not None:
            prepared.add_to(results, found.round)
        self.algorithm.check_fields(decided.recorded)
        results |= decided.recorded
        if found.steps is not None:
            survivors = self.chain.exchange.survivors
            results |= dropouts.rows(found.steps, found.participants, group, survivors)
        measured = _measurements(trained, self.case.link, self.chain.traffic)
        if (seconds := self.schedule.seconds()) is not None:
            measured["virtual_seconds"] = np.array(seconds)
        measured |= self.meter.table(closing.headers)
        kept = found.round + 1 in self.case.evaluation.embeddings
        embeddings = task.embeddings(closing.flags) if kept else {}
        return RoundReport(found.round, results, measured, embeddings, found.notes)


def _results(
    training: Gathered,
    closing: Gathered,
    group: Ints,
    participants: Ints,
    traffic: tuple[int, int],
    receives: npt.NDArray[np.bool_] | None = None,
) -> Rows:
    """Return the results that every algorithm has.

    Parameters
    ----------
    training, closing : Gathered
        The training and the evaluation table, without what it holds of single graphs.
    group : int64 [clients]
        Group of each client after the round.
    participants : int64 [k]
    traffic : (int, int)
        Bytes that a participant sends, and gets.
    receives : bool [clients], optional
        Who gets something; by default the participants.
    """
    took_part = np.zeros(len(group), bool)
    took_part[participants] = True
    rows: Rows = {
        "participated": took_part.astype(np.uint8),
        "group": group.astype(np.int32),
        "client_bytes_up": took_part * np.int64(traffic[0]),
        "client_bytes_down": (took_part if receives is None else receives) * np.int64(traffic[1]),
        "parameter_digest": _join(closing["digest_high"], closing["digest_low"]),
        "evaluation_flops": _counts(closing["evaluation_flops"]),
    }
    for field in ("samples", "steps", "model_flops"):
        rows[field] = _counts(training[field])
    for field in ("delta_norm", "gradient_norm"):
        rows[field] = training[field]
    return rows


def _by_client(fields: Sequence[Field], training: Gathered, closing: Gathered) -> Rows:
    """Return the losses and accuracies that travel by client, of those that the task records."""
    wanted = [field.name for field in fields]
    return {name: table[name] for table in (training, closing) for name in wanted if name in table.columns}


def _together(training: Sequence[int] | None, closing: Sequence[int] | None) -> Rows:
    """Return mean losses and accuracies over the examples of all clients; NaN where there is no sum.

    Parameters
    ----------
    training : sequence of int or None
        Examples, losses, right predictions, summed over participants.
    closing : sequence of int or None
        The same of validation and test, each figure of both parts together.
    """
    found = {"train": training or (0, 0, 0)}
    val, test = np.reshape(closing or (0,) * 6, (3, 2)).T.tolist()
    rows: Rows = {}
    for part, (count, losses, hits) in (found | {"val": val, "test": test}).items():
        rows[f"{part}_loss"] = np.array(losses * LOSS_UNIT / count if count else np.nan)
        rows[f"{part}_accuracy"] = np.array(hits / count if count else np.nan)
    return rows


def _measurements(training: Gathered, link: LinkOptions, traffic: tuple[int, int]) -> Rows:
    """Return the measurements that the training table holds."""
    return {
        "client_wall_seconds": training["wall_s"],
        "client_cpu_seconds": training["cpu_s"],
        "virtual_seconds": np.array(_virtual_seconds(training["cpu_s"], link, sum(traffic))),
    }


def _virtual_seconds(cpu_s: Floats, link: LinkOptions, num_bytes: int) -> float:
    """Return what the round would take if each client had a machine and the stated link."""
    travel = num_bytes * 8 / (link.megabits * 1e6) + (2e-3 * link.latency_ms if num_bytes else 0.0)
    return float(np.nanmax(cpu_s)) + travel if np.isfinite(cpu_s).any() else np.nan


def _counts(values: Floats) -> Ints:
    """Return counts as integers; 0 for NaN."""
    return np.where(np.isnan(values), 0.0, values).astype(np.int64)


def _join(high: Floats, low: Floats) -> npt.NDArray[np.uint64]:
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
