"""Several binary labels per graph or per node, some missing: binary cross-entropy, ROC-AUC."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.metrics.metric import PRC_AUC, ROC_AUC, Metric
from fedmpi.metrics.tasks import average_precision, roc_auc
from fedmpi.store.schema import Field
from fedmpi.tasks.base import HELD_OUT, Rows
from fedmpi.tasks.pooled import Floats, PooledTask

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.datasets.raw import ExampleKind, LabelKind


_SCORES = {ROC_AUC: roc_auc, PRC_AUC: average_precision}


class MultiLabel(PooledTask):
    """Several binary labels per graph, some missing: binary cross-entropy, ROC-AUC.

    As FedGraphNN's trainers: the sum over labelled pairs of graph and task, divided by their number.

    So a graph with few labels counts little.
    """

    name: ClassVar[str] = "multi-label"
    labels: ClassVar[LabelKind] = "multi-task"
    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "grouped", "csr", "reference"})
    metrics: tuple[Metric, ...] = (ROC_AUC, PRC_AUC)
    loss_unit = "nat"

    def score(self, metric: Metric, labels: Floats, predicted: npt.NDArray[np.floating]) -> Floats:
        """Return ROC-AUC or PRC-AUC of each task; NaN where its labels are of one class."""
        return _SCORES[metric](labels, predicted)

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over the labels of the batch; torch's own mean, whose gradient is rounded once."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        known = ~labels.isnan()
        return binary_cross_entropy_with_logits(outputs[known], labels[known])

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the binary cross-entropy of each logit."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        return binary_cross_entropy_with_logits(outputs, labels, reduction="none")

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return the probability of each label."""
        return outputs.sigmoid()

    def _more(self, part: str, found: Rows, scored: bool) -> Rows:
        """Return how many tasks have no ROC-AUC."""
        left_out = np.isnan(found[f"{part}_task_roc_auc"]).sum() if scored else 0
        return {f"{part}_tasks_left_out": np.array(left_out, np.int32)}

    def _fields(self) -> tuple[Field, ...]:
        more = [
            Field(
                f"{part}_tasks_left_out",
                ("round",),
                "i4",
                "1",
                f"tasks left out of the mean: all clients' {name} graphs with a label are of one class",
                "result",
            )
            for part, name in HELD_OUT.items()
        ]
        return (*super()._fields(), *more)


class NodeMultiLabel(MultiLabel):
    """Several binary labels per node, some missing: as of graphs."""

    name: ClassVar[str] = "node-multi-label"
    of: ClassVar[ExampleKind] = "node"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})
