"""The base of all tasks (imports without torch)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store.schema import Field

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.datasets.options import DatasetOptions
    from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs
    from fedmpi.graphs.batch import Batch
    from fedmpi.models.dropout import DropoutStreams
    from fedmpi.models.options import ModelOptions
    from fedmpi.models.outcome import Evaluation, Outcome
    from fedmpi.partition.partition import ClientSplit

Bytes = npt.NDArray[np.uint8]
Rows = dict[str, npt.NDArray[Any]]
Constants = dict[str, list[float | None]]

TORCH_KERNELS = frozenset({"csr", "reference"})
"""Kernels that call a task's own loss; the others bring that of fedmpi's tasks themselves."""

_OF_A_BATCH = {"loss", "losses", "outcome", "predictions", "step_batch", "outputs", "judge"}
"""Methods of a task that other kernels have in code of their own."""


HELD_OUT = {"val": "validation", "test": "test"}
"""Parts that are evaluated, and their names in words."""


class Settings(Protocol):
    """What a task reads of a case, a `fedmpi.case.schema.Case`, which knows tasks."""

    @property
    def seed(self) -> int:
        """Of the run."""

    @property
    def dataset(self) -> DatasetOptions:
        """What is trained on."""

    @property
    def model(self) -> ModelOptions:
        """Whose outputs are judged."""

    @property
    def evaluation(self) -> Any:
        """How: the case's `EvaluationOptions`."""


class Task(ABC):
    """What is predicted of each example, its loss, what travels of it, and by which metrics it is judged.

    Parameters
    ----------
    case : Settings
    raws : sequence of RawGraphs
        The datasets, with the labels that `examples` gave them.
    splits : sequence of ClientSplit
        Examples of each client.

    Attributes
    ----------
    name : str
    labels : str
        Kind of the labels that it needs, as `RawGraphs.task`.
    of : str
        What its examples are, as `RawGraphs.examples`: graphs, nodes or edges.
    reads_targets : bool
        Whether it honours ``dataset.targets``, which is refused elsewhere.
    metrics : tuple of Metric
        The first is the headline.
    supervised : bool
        Whether it has a loss of its own; False: the objective has it, without labels.
    kernels : frozenset of str
        Kernels that can compute what it says of a batch; ask `kernels_of`.
    relational : bool
        Whether it reads a model's states and scores of relations.
    scores_each : int or None
        Scores that the network's head gives of each example, for FLOPs; None: one of every class.
    lengths : int64 [clients]
        Bytes of `pack`.
    fields : tuple of Field
        Of the record: losses and scores.
    """

    name: ClassVar[str]
    labels: ClassVar[LabelKind] = "classification"
    of: ClassVar[ExampleKind] = "graph"
    supervised: ClassVar[bool] = True
    kernels: ClassVar[frozenset[str]] = TORCH_KERNELS
    reads_targets: ClassVar[bool] = False
    relational: ClassVar[bool] = False
    scores_each: ClassVar[int | None] = None
    metrics: tuple[Metric, ...] = ()
    lengths: npt.NDArray[np.int64]
    fields: tuple[Field, ...]

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        if case.dataset.targets != "raw" and not self.reads_targets:
            raise BadInput(f'task "{self.name}" does not read dataset.targets: use "raw"')
        kinds = {raw.task for raw in raws}
        if kinds != {self.labels}:
            raise BadInput(
                f'task "{self.name}" predicts {KINDS[self.labels]}, {raws[0].name} has {KINDS[raws[0].task]}'
            )
        if {raw.examples for raw in raws} != {self.of}:
            raise BadInput(f'task "{self.name}" is for labels of {self.of}s, {raws[0].name} has others')

    @classmethod
    def examples(cls, raw: RawGraphs) -> RawGraphs:
        """Return a dataset with the labels that are predicted; by default its own."""
        return raw

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss over the batch, a scalar."""
        raise NotImplementedError

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each label, as `labels` or [B] of classes; they may be `soft_labels`."""
        raise NotImplementedError

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return what a model predicts in place of labels, for `losses`: probabilities, or numbers."""
        raise NotImplementedError

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return each example's loss, in float64, and what it is scored by."""
        raise NotImplementedError

    def step_batch(self, batch: Batch, streams: DropoutStreams) -> Batch:
        """Return what a training step is taken on; by default the batch as it is."""
        return batch

    def outputs(self, module: Any, batch: Batch, streams: DropoutStreams | None, kernels: str) -> Tensor:
        """Return what the network gives for a batch; `streams` is None in evaluation."""
        return module(batch, streams, kernels)  # type: ignore[no-any-return]

    def judge(self, module: Any, batch: Batch, kernels: str) -> tuple[Outcome, int]:
        """Return what is found of held-out examples, and FLOPs beside those of the network's pass."""
        return self.outcome(self.outputs(module, batch, None, kernels), batch.labels), 0

    @abstractmethod
    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return what travels of a client's examples to rank 0; None if it was not evaluated."""

    @abstractmethod
    def rows(self, gathered: Bytes) -> Rows:
        """Return the record's rows from the bytes of all clients, in client order."""

    def embeddings(self, gathered: Bytes) -> Rows:
        """Return what is kept beside the record in rounds that ask for it."""
        return {}

    def partition(self) -> Rows:
        """Return what the record holds of the labels, as arrays under /partition."""
        return {}

    def constants(self, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> Constants:
        """Return what each client scores with the same prediction for all its examples, by metric.

        None where a client has no test examples. What all clients together score is in `partition`.
        """
        return {}

    def warm_up(self) -> None:  # noqa: B027 - few tasks have something to do
        """Do what the first use of a library costs, before rounds are timed; on rank 0."""


def field_of(metric: Metric, name: str, meaning: str, *axes: str) -> Field:
    """Return the record's field of a score by round, and by further axes."""
    return Field(name, ("round", *axes), "f8", metric.unit, meaning, "result", metric.better)


def labels_of(raws: Sequence[RawGraphs], split: ClientSplit, part: str) -> npt.NDArray[Any]:
    """Return the labels of a client's examples of a part, "train", "val" or "test"."""
    raw = raws[split.dataset]
    return np.asarray(raw.labels)[split.examples(raw, part)]


def packed_scores(length: int, found: Evaluation | None) -> Bytes:
    """Return the scores of validation and test examples as `length` bytes; NaN where none was evaluated."""
    if found is None:
        return np.full(length // 4, np.nan, np.float32).view(np.uint8)
    parts = [part.scores for part in (found.val, found.test) if part.scores is not None]
    return np.concatenate(parts).ravel().view(np.uint8)


def kernels_of(task: type[Task]) -> frozenset[str]:
    """Return the kernels that can run a task: those of its base only where it changes nothing of a batch."""
    for each in task.__mro__:
        if "kernels" in vars(each):
            return each.kernels  # type: ignore[attr-defined, no-any-return]
        if _OF_A_BATCH & set(vars(each)):
            return TORCH_KERNELS
    return TORCH_KERNELS


KINDS = {"classification": "one class each", "multi-task": "binary labels", "regression": "numbers"}
"""Kinds of labels in words, for messages."""
