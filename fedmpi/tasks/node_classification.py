"""One class per node or per edge: cross-entropy, accuracy by client, F1 over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedmpi.datasets.raw import ExampleKind, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY, MACRO_F1, MICRO_F1, Metric
from fedmpi.metrics.tasks import f1
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import HELD_OUT, TORCH_KERNELS, Bytes, Rows, Settings, Task, field_of, labels_of
from fedmpi.tasks.graph_classification import FIELDS, GraphClassification

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.models.outcome import Evaluation
    from fedmpi.partition.partition import ClientSplit

_POOLED = (MICRO_F1, MACRO_F1)
_MOST_CLASSES = np.iinfo(np.int16).max


class NodeClassification(GraphClassification):
    """Node classification: one class per node, cross-entropy, accuracy by client, F1 over all nodes.

    What travels is the predicted class of every held-out node.
    """

    name: ClassVar[str] = "node-classification"
    of: ClassVar[ExampleKind] = "node"
    kernels: ClassVar[frozenset[str]] = GraphClassification.kernels
    metrics: tuple[Metric, ...] = (ACCURACY, *_POOLED)
    fields = (
        *FIELDS,
        *(
            field_of(
                metric,
                metric.field(part),
                f"{metric.meaning} over all clients' {name} nodes, each under its client's new model",
            )
            for part, name in HELD_OUT.items()
            for metric in _POOLED
        ),
    )

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        Task.__init__(self, case, raws, splits)
        if len({raw.class_names for raw in raws}) > 1:
            names = ", ".join(raw.name for raw in raws)
            raise BadInput(f'task "{self.name}" takes datasets of the same classes, here are {names}')
        if raws[0].num_classes > _MOST_CLASSES:
            raise BadInput(f'task "{self.name}" takes up to {_MOST_CLASSES} classes, {raws[0].name} has more')
        self._classes = raws[0].num_classes
        held = [[labels_of(raws, split, part) for part in HELD_OUT] for split in splits]
        sizes = np.array([[len(labels) for labels in each] for each in held], np.int64)
        self._labels = np.concatenate([np.zeros(0, np.int64), *(labels for each in held for labels in each)])
        self._is_test = np.repeat(np.tile([False, True], len(splits)), sizes.ravel())
        trained = [labels_of(raws, split, "train") for split in splits]
        self._most_common = int(np.bincount(np.concatenate(trained), minlength=1).argmax())
        self.lengths = 2 * sizes.sum(axis=1)

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return losses (float64), right predictions and predicted classes of logits [n, C], labels [n]."""
        predicted = outputs.argmax(dim=1).cpu().numpy().astype(np.int16)
        return replace(super().outcome(outputs, labels), predicted=predicted)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the predicted classes of held-out nodes; -1 where the client was not evaluated."""
        if found is None:
            return np.full(int(self.lengths[client]) // 2, -1, np.int16).view(np.uint8)
        parts = [part.predicted for part in (found.val, found.test) if part.predicted is not None]
        return np.concatenate(parts).view(np.uint8)

    def rows(self, gathered: Bytes) -> Rows:
        """Return flags of the test nodes, and F1 over all evaluated nodes; accuracies travel by client."""
        predicted = gathered.view(np.int16)
        found: Rows = {"test_correct": (predicted == self._labels)[self._is_test].astype(np.uint8)}
        for part, chosen in (("val", ~self._is_test), ("test", self._is_test)):
            scored = chosen & (predicted >= 0)
            micro, macro = f1(self._labels[scored], predicted[scored], self._classes)
            found |= {MICRO_F1.field(part): np.array(micro), MACRO_F1.field(part): np.array(macro)}
        return found

    def partition(self) -> Rows:
        """Return the share of the test examples that are of the most frequent class of training."""
        right = (self._labels[self._is_test] == self._most_common).mean()
        return {f"constant_{MICRO_F1.name}": np.array([right])}


class RelationPrediction(NodeClassification):
    """Relation prediction: the class of an edge, cross-entropy, accuracy by client and F1 over all edges.

    The model reads the product of both nodes' states.
    """

    name: ClassVar[str] = "relation-prediction"
    of: ClassVar[ExampleKind] = "edge"
    kernels: ClassVar[frozenset[str]] = TORCH_KERNELS
