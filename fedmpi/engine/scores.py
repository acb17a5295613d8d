"""What of single graphs travels to rank 0 after an evaluation, and the record's fields made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.engine.clients import Evaluation
from fedmpi.engine.labels import Labels
from fedmpi.metrics import tasks
from fedmpi.partition.partition import ClientSplit
from fedmpi.store.schema import Field

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Rows = dict[str, npt.NDArray[Any]]
Score = Callable[[Floats, npt.NDArray[np.float32]], Floats]

_MOST_SCORED = 4096
"""Clients times tasks up to which every client has a score of its own; rank 0 computes them every round."""


class GraphScores(Protocol):
    """Bytes of every client's held-out graphs, and what they say.

    Attributes
    ----------
    lengths : int64 [clients]
        Bytes of each client.
    fields : tuple of Field
        Of the record, beside the common ones.
    """

    lengths: Ints
    fields: tuple[Field, ...]

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return a client's bytes; None if it was not evaluated."""

    def rows(self, gathered: Bytes) -> Rows:
        """Return the record's rows from the bytes of all clients, in client order."""

    def embeddings(self, gathered: Bytes) -> Rows:
        """Return what is kept beside the record in rounds that ask for it."""


class Hits:
    """Classification: a flag for every test graph."""

    fields: tuple[Field, ...] = ()

    def __init__(self, splits: Sequence[ClientSplit]) -> None:
        self.lengths = np.array([len(split.test) for split in splits], np.int64)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the flags; 0 where the client was not evaluated."""
        return np.zeros(self.lengths[client], np.uint8) if found is None else found.test.hits

    def rows(self, gathered: Bytes) -> Rows:
        """Return the flags."""
        return {"test_correct": gathered}

    def embeddings(self, gathered: Bytes) -> Rows:
        """Return nothing: unsupervised objectives have embeddings."""
        return {}


class TaskScores:
    """Other tasks: a float32 per held-out graph and task, from which rank 0 has scores over all graphs.

    Parameters
    ----------
    splits : sequence of ClientSplit
    labels : Labels
    """

    def __init__(self, splits: Sequence[ClientSplit], labels: Labels) -> None:
        self._labels, self._width = labels, len(labels.names)
        self._val = np.array([len(split.val) for split in splits], np.int64)
        self._test = np.array([len(split.test) for split in splits], np.int64)
        self.lengths = 4 * self._width * (self._val + self._test)
        self._by_client = len(splits) * self._width <= _MOST_SCORED
        self._scores = _SCORES[labels.task]
        self.fields = task_fields(labels.task, self._by_client)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the scores of validation and test graphs; NaN where the client was not evaluated."""
        if found is None:
            count = int(self._val[client] + self._test[client]) * self._width
            return np.full(count, np.nan, np.float32).view(np.uint8)
        parts = [part.scores for part in (found.val, found.test) if part.scores is not None]
        return np.concatenate(parts).ravel().view(np.uint8)

    def rows(self, gathered: Bytes) -> Rows:
        """Return scores over all evaluated graphs, by task and as means, and each client's own."""
        table = gathered.view(np.float32).reshape(-1, self._width)
        place = np.repeat(np.arange(2 * len(self._val)), np.stack([self._val, self._test], 1).ravel())
        parts = {"val": (self._labels.val, place % 2 == 0), "test": (self._labels.test, place % 2 == 1)}
        found: Rows = {"test_correct": np.zeros(int(self._test.sum()), np.uint8)}
        for part, (labels, chosen) in parts.items():
            values, client = table[chosen], place[chosen] // 2
            scored = ~np.isnan(values[:, 0])
            for name, (score, _) in self._scores.items():
                by_task = score(labels[scored], values[scored])
                found[f"{part}_task_{name}"] = by_task
                found[f"{part}_{name}"] = np.array(tasks.mean_over_tasks(by_task))
            if self._labels.task == "multi-task":
                left_out = np.isnan(found[f"{part}_task_roc_auc"]).sum()
                found[f"{part}_tasks_left_out"] = np.array(left_out if scored.any() else 0, np.int32)
            if self._by_client:
                name, (score, _) = next(iter(self._scores.items()))
                found[f"client_{part}_{name}"] = np.array(
                    [_own(score, labels, values, client == number) for number in range(len(self._val))]
                )
        return found

    def embeddings(self, gathered: Bytes) -> Rows:
        """Return nothing: unsupervised objectives have embeddings."""
        return {}


def _own(score: Score, labels: Floats, values: npt.NDArray[np.float32], mine: npt.NDArray[np.bool_]) -> float:
    """Return the mean over tasks of a client's own graphs; NaN where it was not evaluated."""
    if not mine.any() or np.isnan(values[mine, 0]).any():
        return float("nan")
    return tasks.mean_over_tasks(score(labels[mine], values[mine]))


_SCORES: dict[str, dict[str, tuple[Score, str]]] = {
    "multi-task": {
        "roc_auc": (tasks.roc_auc, "area under the ROC curve"),
        "prc_auc": (tasks.average_precision, "area under the precision-recall curve"),
    },
    "regression": {
        "rmse": (tasks.rmse, "root mean squared error, in the labels' own units"),
        "mae": (tasks.mae, "mean absolute error, in the labels' own units"),
        "r2": (tasks.r2, "coefficient of determination"),
    },
}
"""Scores of each task, the headline first."""


def task_fields(task: str, by_client: bool) -> tuple[Field, ...]:
    """Return the record's fields of a task other than classification."""
    found: list[Field] = []
    for part, of in (("val", "all clients' validation graphs"), ("test", "all clients' test graphs")):
        for number, (name, (_, meaning)) in enumerate(_SCORES[task].items()):
            better: Literal["lower", "higher"] = "lower" if name in ("rmse", "mae") else "higher"
            mean = (
                f"{meaning} over {of}, each under its client's new model; mean over the tasks that have one"
            )
            found.append(Field(f"{part}_{name}", ("round",), "f8", "1", mean, "result", better))
            each = f"the same for each task of partition/task_names; NaN where a task has none: {meaning}"
            found.append(Field(f"{part}_task_{name}", ("round", "task"), "f8", "1", each, "result", better))
            if by_client and not number:
                own = f"{meaning} over the client's own graphs; mean over the tasks that have one"
                axes = ("round", "client")
                found.append(Field(f"client_{part}_{name}", axes, "f8", "1", own, "result", better))
        if task == "multi-task":
            left = f"tasks left out of the mean because {of} with a label are of one class"
            found.append(Field(f"{part}_tasks_left_out", ("round",), "i4", "1", left, "result"))
    return tuple(found)


def graph_scores(splits: Sequence[ClientSplit], labels: Labels) -> GraphScores:
    """Return what travels for the task of these labels."""
    return Hits(splits) if labels.task == "classification" else TaskScores(splits, labels)
