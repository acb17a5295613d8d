"""Clusters from a matrix of similarities: trees cut at a number, a distance or the best silhouette; k-means.

FedCCH names a "hierarchical clustering tree" and k-means, and neither linkage, cut nor number of
clusters (section 4.3), so each is an option; the defaults are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Floats, Ints

Linkage = Literal["average", "complete", "single", "ward"]
Division = Callable[[int], Ints]
"""Labels of the m clients in at most so many clusters."""


def tree(similarity: Floats, linkage: Linkage) -> Floats:
    """Return scipy's linkage matrix of the distances 1 - E.

    Ward's method is defined on Euclidean distances, which the roots of 1 - E are (up to a factor): for
    bits by Hamming distance, for unit vectors by cosine.
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    distances = squareform(_distances(similarity), checks=False)
    found: Floats = hierarchy.linkage(np.sqrt(distances) if linkage == "ward" else distances, linkage)
    return found


def cut_at_number(merges: Floats, clusters: int) -> Ints:
    """Return the clusters of a tree cut where at most so many are left; ties are merged together.

    Clients that nothing tells apart are one cluster, however many are asked for.
    """
    from scipy.cluster import hierarchy

    if clusters > len(merges):
        return cut_at_distance(merges, 0.0)
    return numbered(hierarchy.fcluster(merges, clusters, "maxclust"))


def cut_at_distance(merges: Floats, distance: float) -> Ints:
    """Return the clusters of a tree cut above all merges at up to this distance."""
    from scipy.cluster import hierarchy

    return numbered(hierarchy.fcluster(merges, distance, "distance"))


def k_means(points: Floats, clusters: int, seed: int) -> Ints:
    """Return the best of ten k-means clusterings of points [m, h]; at most as many as there are places.

    One thread, so that sums have one order.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    distinct = len(np.unique(points, axis=0))
    means = KMeans(min(clusters, distinct), n_init=10, random_state=seed % 2**32)
    with threadpool_limits(1):
        return numbered(means.fit_predict(points))


def best_silhouette(similarity: Floats, divide: Division) -> Ints:
    """Return the division of largest mean silhouette on 1 - E, of 2 to half as many clusters as clients.

    The smallest number wins a tie. All clients are one cluster where there are fewer than three of them
    or nothing tells them apart.
    """
    from sklearn.metrics import silhouette_score

    count = len(similarity)
    best, highest = np.zeros(count, np.int64), -np.inf
    distances = _distances(similarity)
    for clusters in range(2, min(max(2, count // 2) + 1, count)):
        labels = divide(clusters)
        if not 2 <= len(np.unique(labels)) < count:
            continue
        score = float(silhouette_score(distances, labels, metric="precomputed"))
        if score > highest:
            best, highest = labels, score
    return best


def numbered(labels: npt.ArrayLike) -> Ints:
    """Return labels as numbers from 0, in the order of the clusters' first clients."""
    _, first, of_client = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[of_client]


def _distances(similarity: Floats) -> Floats:
    distances: Floats = np.maximum(1.0 - similarity, 0.0)
    return distances
