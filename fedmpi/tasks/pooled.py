"""Tasks that are judged by one score over the held-out examples of all clients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput, RankFailed
from fedmpi.metrics.metric import Metric
from fedmpi.metrics.tasks import mean_over_tasks
from fedmpi.models.outcome import Outcome
from fedmpi.store.schema import Field, held_out_losses, training_loss
from fedmpi.tasks.base import HELD_OUT, Bytes, Rows, Settings, Task, field_of, packed_scores

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.datasets.raw import RawGraphs
    from fedmpi.models.outcome import Evaluation
    from fedmpi.partition.partition import ClientSplit

Floats = npt.NDArray[np.float64]

_MOST_SCORED = 4096
"""Clients times label columns up to which every client has a score of its own, computed every round."""


class PooledTask(Task):
    """A float32 per held-out example and label column travels; rank 0 has the scores over all of them.

    A task of this kind names its metrics and says what they score (`score`), its loss for each label
    (`losses`), and, where outputs are no predictions, what they predict (`predictions`). A missing label
    (NaN) counts for nothing.
    """

    loss_unit = "1"
    own: ClassVar[int] = 1
    """Of how many of its metrics, from the first on, each client has a score of its own in the record."""
    ordered: ClassVar[tuple[Metric, ...]] = ()
    """Which of its metrics `more` gives, because they are no function of labels and predictions alone."""

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        super().__init__(case, raws, splits)
        if len(raws) > 1:
            names = ", ".join(raw.name for raw in raws)
            raise BadInput(f'task "{self.name}" takes one dataset per case, here are {names}')
        if getattr(case.model, "head", None) == "own":
            raise BadInput('model.head = "own" is for one class each; use model.head = "dataset"')
        raw, values = raws[0], np.asarray(raws[0].labels)
        self._names, self._width = raw.class_names, values.shape[1]
        held = {part: [split.examples(raw, part) for split in splits] for part in ("train", "val", "test")}
        for split, trained in zip(splits, held["train"], strict=True):
            if len(trained) and np.isnan(values[trained]).all():
                raise BadInput(
                    f"{raw.name}: {split.name} has no label in training: use fewer clients or another seed"
                )
        self._trained = values[np.concatenate(held["train"])]
        self._held_out = {part: values[np.concatenate(held[part])] for part in ("val", "test")}
        both = zip(held["val"], held["test"], strict=True)
        self._sizes = np.array([[len(part) for part in each] for each in both])
        self.lengths = 4 * self._width * self._sizes.sum(axis=1)
        self._by_client = len(splits) * self._width <= _MOST_SCORED
        self.fields = self._fields()

    @abstractmethod
    def score(self, metric: Metric, labels: Floats, predicted: npt.NDArray[np.floating]) -> Floats:
        """Return a metric of each label column, float64 [T]; NaN where it has none.

        Parameters
        ----------
        metric : Metric
            One of `metrics`.
        labels : float64 [n, T]
            NaN where one is missing.
        predicted : float [n, T]
            What `predictions` returned.
        """

    @abstractmethod
    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each output [B, T], in its type; missing labels are 0, their losses unused."""

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return what is scored of outputs [B, T]; float64."""
        return outputs.double()

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return the predictions [B, T], in the type of the outputs."""
        return self.predictions(outputs).to(outputs.dtype)

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over the labels of the batch; outputs and labels [B, T]."""
        known, wanted = filled(labels)
        return self.losses(outputs, wanted)[known].mean()

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return each example's sum over its labels, their number, and the predictions as scores."""
        outputs = outputs.detach()
        known, wanted = filled(labels)
        losses = self.losses(outputs.double(), wanted.double()) * known
        found, counted = losses.sum(dim=1).cpu().numpy(), known.sum(dim=1).cpu().numpy()
        scores = self.predictions(outputs).float().cpu().numpy()
        if np.isnan(scores).any() and bool(outputs.isfinite().all()):
            raise RankFailed(f"task {self.name}: `predictions` made NaN of finite outputs")
        return Outcome(found, np.zeros(len(found), np.uint8), counted, scores)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the predictions of validation and test examples; NaN where the client was not evaluated."""
        return packed_scores(int(self.lengths[client]), found)

    def rows(self, gathered: Bytes) -> Rows:
        """Return scores over all evaluated examples, by label column and as means, and each client's own."""
        table = gathered.view(np.float32).reshape(-1, self._width)
        place = np.repeat(np.arange(self._sizes.size), self._sizes.ravel())
        found: Rows = {}
        for number, (part, labels) in enumerate(self._held_out.items()):
            chosen = place % 2 == number
            values, client = table[chosen], place[chosen] // 2
            scored = ~np.isnan(values[:, 0])
            for metric in self.scored:
                by_column = self.score(metric, labels[scored], values[scored])
                found[f"{part}_task_{metric.name}"] = by_column
                found[metric.field(part)] = np.array(mean_over_tasks(by_column))
            found |= self._more(part, found, bool(scored.any()))
            found |= self.more(part, values, scored)
            for metric in self.metrics[: self.own] if self._by_client else ():
                found[f"client_{metric.field(part)}"] = np.array(
                    [
                        self._own(metric, labels, values, client == number)
                        for number in range(len(self._sizes))
                    ]
                )
        return found

    @property
    def scored(self) -> list[Metric]:
        """Its metrics that are functions of labels and predictions."""
        return [metric for metric in self.metrics if metric not in self.ordered]

    def more(self, part: str, predicted: npt.NDArray[np.floating], scored: npt.NDArray[np.bool_]) -> Rows:
        """Return the `ordered` metrics of a part by field.

        Parameters
        ----------
        part : str
            "val" or "test".
        predicted : float [n, T]
            Of all its examples, client after client.
        scored : bool [n]
            Which of them were evaluated.
        """
        return {}

    def _more(self, part: str, found: Rows, scored: bool) -> Rows:
        """Return further rows of a part; `scored`: whether any of its examples was evaluated."""
        return {}

    def _own(
        self, metric: Metric, labels: Floats, values: npt.NDArray[np.floating], mine: npt.NDArray[np.bool_]
    ) -> float:
        """Return the mean over label columns of a client's metric; NaN where it was not evaluated."""
        if not mine.any() or np.isnan(values[mine, 0]).any():
            return float("nan")
        return mean_over_tasks(self.score(metric, labels[mine], values[mine]))

    def _fields(self) -> tuple[Field, ...]:
        found = [training_loss(self.loss_unit), *held_out_losses(self.loss_unit)]
        for part, words in HELD_OUT.items():
            of = f"all clients' {words} {self.of}s"
            found += [
                field_of(metric, metric.field(part), f"{metric.meaning}, of {of}") for metric in self.ordered
            ]
            for number, metric in enumerate(self.scored):
                has_one, field = "mean over the tasks that have one", metric.field(part)
                mean = f"{metric.meaning} over {of}, each under its client's new model; {has_one}"
                each = "the same for each task of partition/task_names; NaN where a task has none: "
                found.append(field_of(metric, field, mean))
                found.append(field_of(metric, f"{part}_task_{metric.name}", each + metric.meaning, "task"))
                if self._by_client and number < self.own:
                    own = f"{metric.meaning} over the client's own {self.of}s; {has_one}"
                    found.append(field_of(metric, f"client_{field}", own, "client"))
        return tuple(found)

    def partition(self) -> Rows:
        """Return the names of the label columns, and what predicting the mean training label scores."""
        arrays: Rows = {"task_names": np.array(self._names)}
        headline, test = self.metrics[0], self._held_out["test"]
        if np.isnan(headline.constant):
            constant = np.broadcast_to(means(self._trained), test.shape)
            arrays[f"constant_{headline.name}"] = self.score(headline, test, constant)
        return arrays


def filled(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return where labels are known, and the labels with 0 in place of those that are missing."""
    known = ~labels.isnan()
    return known, labels.masked_fill(~known, 0.0)


def means(values: Floats) -> Floats:
    """Return the mean of each column over the labels that are there; NaN where none is."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    found: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return found
