"""How well clusters of vectors agree with classes, as FCLG evaluates unsupervised representations.

One k-means with as many clusters as classes over the vectors as they are (not normalised), clusters
matched to classes one to one so that most graphs are right (Hungarian method), then accuracy and macro
F1. Li, Agrawal, Ramnath and Jin 2024, section IV; the steps are recovered from the published rows of
MVGRL, which are those of one cluster with nearly everything.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

_STARTS = 10
_FOLDS = 5


@dataclass(frozen=True)
class ClusterScore:
    """Agreement of clusters and classes, both figures in [0, 1]."""

    accuracy: float
    macro_f1: float


def warm_up() -> None:
    """Load what clusters and probe are computed with, so that no round is timed with it."""
    vectors = np.eye(2 * _FOLDS, dtype=np.float32)
    labels = np.arange(2 * _FOLDS) % 2
    score(vectors, labels, 0)
    probe(vectors, labels, 0)


def score(vectors: Vectors, labels: Ints, seed: int) -> ClusterScore:
    """Return how well the k-means clusters of the vectors [G, d] agree with the labels [G].

    Parameters
    ----------
    seed : int
        Of k-means' starts, below 2**32; the best of ten counts. One thread, so that sums have one order.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different vectors than clusters
        means = KMeans(int(labels.max()) + 1, n_init=_STARTS, random_state=seed)
        return agreement(labels, means.fit_predict(vectors.astype(np.float64)).astype(np.int64))


def unit(vectors: Vectors) -> Vectors:
    """Return vectors [G, d] divided by their 2-norm; zeros stay."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def agreement(labels: Ints, clusters: Ints) -> ClusterScore:
    """Return accuracy and macro F1 of clusters [G] against labels [G], after the best one-to-one matching."""
    from scipy.optimize import linear_sum_assignment

    count = int(max(labels.max(), clusters.max())) + 1
    table = np.zeros((count, count), np.int64)  # class by cluster
    np.add.at(table, (labels, clusters), 1)
    classes, matched = linear_sum_assignment(table, maximize=True)
    right = table[classes, matched]
    sizes = table.sum(axis=1) + table.sum(axis=0)[matched]
    f1 = 2 * right / np.maximum(sizes, 1)
    return ClusterScore(float(right.sum() / len(labels)), float(f1[: int(labels.max()) + 1].mean()))


def one_cluster(counts: Ints) -> ClusterScore:
    """Return how well one cluster with all graphs agrees with classes of so many graphs [C]."""
    share = counts.max() / counts.sum()
    return ClusterScore(float(share), float(2 * share / (1 + share) / len(counts)))


def can_probe(labels: Ints) -> bool:
    """Return whether there are two classes at least with a graph in every fold of `probe`."""
    return int((np.bincount(labels) >= _FOLDS).sum()) >= 2


def probe(vectors: Vectors, labels: Ints, seed: int) -> float:
    """Return the accuracy of logistic regression on standardised vectors, five-fold cross-validated.

    Not in FCLG: it shows how much of the classes is in the vectors, where clusters miss it.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    with threadpool_limits(1):
        scores = cross_val_score(classifier, vectors.astype(np.float64), labels, cv=folds)
    return float(scores.mean())
