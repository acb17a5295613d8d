"""Clusters of unsupervised vectors: rank 0 scores one k-means over the vectors of all clients' graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedmpi.metrics import clustering
from fedmpi.metrics.metric import CLUSTERING_ACCURACY, CLUSTERING_F1, PROBE_ACCURACY, Metric
from fedmpi.seeds import Purpose, key
from fedmpi.store.schema import training_loss
from fedmpi.tasks.base import Bytes, Rows, Settings, Task, field_of

if TYPE_CHECKING:
    from fedmpi.datasets.raw import LabelKind, RawGraphs
    from fedmpi.models.outcome import Evaluation
    from fedmpi.partition.partition import ClientSplit


class Clustering(Task):
    """The vectors of all graphs of all clients travel; the objective has the loss."""

    name: ClassVar[str] = "clustering"
    labels: ClassVar[LabelKind] = "classification"
    supervised: ClassVar[bool] = False
    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "csr", "reference"})
    metrics: tuple[Metric, ...] = (CLUSTERING_ACCURACY, CLUSTERING_F1)

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        super().__init__(case, raws, splits)
        self._dimension: int = getattr(case.model, "dimension")  # noqa: B009 - the registry refused others
        self._normalised = case.evaluation.vectors == "unit"
        self._seed = key(case.seed, Purpose.CLUSTERING) % 2**32
        self._labels = np.asarray(raws[0].labels)[np.concatenate([split.graphs for split in splits])]
        self.lengths = np.array([4 * self._dimension * len(split.graphs) for split in splits], np.int64)
        if case.evaluation.probe:
            self.metrics = (*self.metrics, PROBE_ACCURACY)
        scores = (field_of(metric, metric.name, metric.meaning) for metric in self.metrics)
        self.fields = (training_loss("nat"), *scores)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the client's vectors; NaN where it was not evaluated."""
        if found is None or found.vectors is None:
            return np.full(int(self.lengths[client]) // 4, np.nan, np.float32).view(np.uint8)
        return found.vectors.reshape(-1).view(np.uint8)

    def embeddings(self, gathered: Bytes) -> Rows:
        """Return vectors [G, d] and labels [G] of all graphs, client after client as in the partition."""
        vectors = gathered.view(np.float32).reshape(-1, self._dimension)
        return {"vectors": vectors, "labels": self._labels}

    def rows(self, gathered: Bytes) -> Rows:
        """Return the scores of the clusters; NaN in rounds without evaluation."""
        vectors = self.embeddings(gathered)["vectors"]
        rows: Rows = {metric.name: np.array(np.nan) for metric in self.metrics}
        if np.isfinite(vectors).all():
            chosen = clustering.unit(vectors) if self._normalised else vectors
            found = clustering.score(chosen, self._labels, self._seed)
            rows[CLUSTERING_ACCURACY.name] = np.array(found.accuracy)
            rows[CLUSTERING_F1.name] = np.array(found.macro_f1)
            if PROBE_ACCURACY in self.metrics:
                rows[PROBE_ACCURACY.name] = np.array(clustering.probe(vectors, self._labels, self._seed))
        return rows

    def partition(self) -> Rows:
        """Return what one cluster for all graphs scores: the share of the largest class."""
        counts = np.bincount(self._labels)
        return {f"constant_{CLUSTERING_ACCURACY.name}": np.array([counts.max() / counts.sum()])}

    def warm_up(self) -> None:
        """Load scikit-learn's k-means, and its logistic regression."""
        clustering.warm_up()
