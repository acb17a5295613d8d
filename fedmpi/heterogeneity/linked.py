"""How alike linked nodes are: per graph, a histogram of cosine similarities over its edges."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fedmpi.datasets.features import build
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import GraphSet
from fedmpi.heterogeneity.structure import graph_of_node, undirected

Float = npt.NDArray[np.float64]

BINS = 20
"""Equal bins on [0, 1]; the last one holds 1."""

_NODES_AT_ONCE = 20_000


def similarity_histograms(raw: RawGraphs, features: str = "original") -> Float:
    """Return the share of each graph's edges in each bin of cosine similarity.

    By default features are the "original" ones: one-hot node labels, or one-hot degrees in sets that
    have neither labels nor attributes, so that a similarity is 0 or 1. A negative similarity (of
    attributes) counts as 0, and so does one with a zero vector.

    Parameters
    ----------
    raw : RawGraphs
        The dataset.
    features : str
        One of `fedmpi.datasets.feature_kinds.FEATURES`.

    Returns
    -------
    float64 [G, BINS]
        Rows add up to 1; a row of NaN for a graph without edges.
    """
    part = np.asarray(raw.topology.graph_ptr[1:]) // _NODES_AT_ONCE
    bounds = [0, *(np.flatnonzero(np.diff(part)) + 1), raw.num_graphs]
    rows = [
        _histograms(build(raw, np.arange(first, last), features))
        for first, last in itertools.pairwise(bounds)
    ]
    return np.concatenate(rows)


def _histograms(graphs: GraphSet) -> Float:
    topology = undirected(graphs.topology)
    to, of = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr)), topology.columns
    norms = np.linalg.norm(graphs.features, axis=1, keepdims=True)
    unit = sparse.csr_array(graphs.features / np.where(norms > 0, norms, 1), dtype=np.float64)
    similarity = np.asarray(unit[to].multiply(unit[of]).sum(axis=1))
    slack = 1e-6  # float32 features: a vector's similarity to itself may fall just short of its bin
    bins = np.clip(np.floor(similarity * BINS + slack), 0, BINS - 1).astype(np.int64)
    cells = graph_of_node(topology)[to] * BINS + bins
    counts = np.bincount(cells, minlength=graphs.num_graphs * BINS).reshape(-1, BINS)
    totals = counts.sum(axis=1, keepdims=True)
    shares: Float = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return shares
