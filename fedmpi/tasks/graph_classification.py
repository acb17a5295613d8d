"""Graph classification: one class per graph, cross-entropy of the head's logits, accuracy by client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedmpi.metrics.metric import ACCURACY, Metric
from fedmpi.models.outcome import Outcome
from fedmpi.store.schema import Field, held_out_losses, training_loss
from fedmpi.tasks.base import Bytes, Constants, Rows, Settings, Task, field_of, labels_of

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.datasets.raw import LabelKind, RawGraphs
    from fedmpi.models.outcome import Evaluation
    from fedmpi.partition.partition import ClientSplit


FIELDS = (
    training_loss("nat"),
    field_of(ACCURACY, "train_accuracy", "running mean of the accuracy over the round's batches", "client"),
    *held_out_losses("nat"),
    field_of(ACCURACY, "val_accuracy", "validation accuracy of the new model", "client"),
    field_of(ACCURACY, "test_accuracy", "test accuracy of the new model", "client"),
    Field(
        "test_correct",
        ("round", "example"),
        "u1",
        "1",
        "1 if its client's new model classifies the test graph rightly, in the order of "
        "partition/test_index; 0 too where the client was not evaluated",
        "result",
        "higher",
    ),
)


class GraphClassification(Task):
    """What travels is a flag for every test graph."""

    name: ClassVar[str] = "graph-classification"
    labels: ClassVar[LabelKind] = "classification"
    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "grouped", "csr", "reference"})
    metrics: tuple[Metric, ...] = (ACCURACY,)
    fields = FIELDS

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        super().__init__(case, raws, splits)
        self.lengths = np.array([len(split.test) for split in splits], np.int64)

    def constants(self, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> Constants:
        """Return the accuracy of each client's most frequent class of training; of equal ones the first."""
        if self.labels != "classification":  # a plug-in's own kind
            return {}
        found: list[float | None] = []
        for split in splits:
            train, test = (labels_of(raws, split, part) for part in ("train", "test"))
            both = len(train) and len(test)
            found.append(float((test == np.bincount(train).argmax()).mean()) if both else None)
        return {ACCURACY.name: found}

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean negative log-likelihood over the batch, a scalar."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, labels)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the negative log-likelihood of each example, [B]; labels [B], or probabilities [B, C]."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, labels, reduction="none")

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return probabilities of the classes, [B, C]."""
        return outputs.softmax(dim=1)

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return losses (float64) and right predictions of logits [B, C] against labels [B]."""
        from torch.nn.functional import cross_entropy

        losses = cross_entropy(outputs.detach().double(), labels, reduction="none")
        hits = (outputs.argmax(dim=1) == labels).cpu().numpy().astype(np.uint8)
        return Outcome(losses.cpu().numpy(), hits)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the flags; 0 where the client was not evaluated."""
        return np.zeros(self.lengths[client], np.uint8) if found is None else found.test.hits

    def rows(self, gathered: Bytes) -> Rows:
        """Return the flags; accuracies and losses travel by client."""
        return {"test_correct": gathered}
