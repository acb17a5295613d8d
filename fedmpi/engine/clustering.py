"""Unsupervised runs are scored on rank 0: one k-means over the vectors of all clients' graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.engine.clients import Evaluation
from fedmpi.engine.federation import Federation
from fedmpi.engine.scores import GraphScores, graph_scores
from fedmpi.metrics import clustering
from fedmpi.models.options import GinEncoderOptions, MvgrlEncoderOptions
from fedmpi.seeds import Purpose, key
from fedmpi.store.schema import Field

if TYPE_CHECKING:
    from fedmpi.partition.partition import ClientSplit

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def _score(name: str, meaning: str) -> Field:
    return Field(name, ("round",), "f8", "1", meaning, "result", "higher")


ACCURACY = _score(
    "clustering_accuracy",
    "share of all graphs in the cluster matched to their class: one k-means, as many clusters as classes",
)
MACRO_F1 = _score("clustering_f1", "mean over classes of the F1 of the same matched clusters")
PROBE = _score(
    "probe_accuracy",
    "accuracy of logistic regression on the vectors, five-fold cross-validated; not in the papers",
)


class ClusterScores:
    """Unsupervised objectives: the vectors of all graphs of all clients, from which rank 0 has its scores.

    Parameters
    ----------
    case : Case
    splits : sequence of ClientSplit
    labels : int64 [G]
        Class of every graph of the dataset.
    """

    def __init__(self, case: Case, splits: Sequence[ClientSplit], labels: Ints) -> None:
        assert isinstance(case.model, GinEncoderOptions | MvgrlEncoderOptions)
        self._probe, self._dimension = case.evaluation.probe, case.model.dimension
        self._normalised = case.evaluation.vectors == "unit"
        self._seed = key(case.seed, Purpose.CLUSTERING) % 2**32
        self._labels = np.asarray(labels)[np.concatenate([split.graphs for split in splits])]
        self.lengths = np.array([4 * self._dimension * len(split.graphs) for split in splits], np.int64)
        self.fields: tuple[Field, ...] = (ACCURACY, MACRO_F1, *((PROBE,) if self._probe else ()))
        self._num_tested = sum(len(split.test) for split in splits)

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the client's vectors; NaN where it was not evaluated."""
        if found is None or found.vectors is None:
            return np.full(self.lengths[client] // 4, np.nan, np.float32).view(np.uint8)
        return found.vectors.reshape(-1).view(np.uint8)

    def embeddings(self, gathered: Bytes) -> dict[str, npt.NDArray[Any]]:
        """Return vectors [G, d] and labels [G] of all graphs, client after client as in the partition."""
        vectors = gathered.view(np.float32).reshape(-1, self._dimension)
        return {"vectors": vectors, "labels": self._labels}

    def rows(self, gathered: Bytes) -> dict[str, npt.NDArray[Any]]:
        """Return the scores of the clusters; NaN in rounds without evaluation."""
        vectors = self.embeddings(gathered)["vectors"]
        rows = {field.name: np.array(np.nan) for field in self.fields}
        if np.isfinite(vectors).all():
            chosen = clustering.unit(vectors) if self._normalised else vectors
            found = clustering.score(chosen, self._labels, self._seed)
            rows[ACCURACY.name], rows[MACRO_F1.name] = np.array(found.accuracy), np.array(found.macro_f1)
            if self._probe:
                rows[PROBE.name] = np.array(clustering.probe(vectors, self._labels, self._seed))
        return {**rows, "test_correct": np.zeros(self._num_tested, np.uint8)}


def scores_of(case: Case, federation: Federation) -> GraphScores:
    """Return what travels of single graphs in this case."""
    splits = federation.partition.clients
    if case.objective.supervised:
        return graph_scores(splits, federation.labels)
    return ClusterScores(case, splits, np.asarray(federation.raws[0].labels))
