"""Random counterparts of real graphs: Erdos-Renyi G(n, m) or G(n, p)."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import Int, Topology
from fedmpi.heterogeneity.pairs import triangular
from fedmpi.heterogeneity.streams import Draw, stream
from fedmpi.heterogeneity.structure import adjacency, undirected


def random_counterparts(topology: Topology, seed: int, exact_edges: bool = True) -> Topology:
    """Return for each graph a random one of its size.

    Graph ``g`` of the result depends on the seed, ``g`` and its numbers of nodes and edges only.

    Parameters
    ----------
    topology : Topology
        Graphs, taken as undirected.
    seed : int
        Seed of the draws.
    exact_edges : bool
        G(n, m): uniform among the graphs with the same numbers of nodes and edges. Else G(n, p):
        each pair is linked with the same chance, so that the number of edges is equal on average.
    """
    degrees = np.diff(adjacency(topology).indptr)
    sizes = np.diff(topology.graph_ptr)
    lower, upper = [], []
    for graph, (start, size) in enumerate(zip(topology.graph_ptr[:-1], sizes, strict=True)):
        edges = int(degrees[start : start + size].sum()) // 2
        rng = stream(seed, Draw.RANDOM_GRAPHS, graph)
        possible = int(size) * (int(size) - 1) // 2
        if not exact_edges and possible:
            edges = int(rng.binomial(possible, edges / possible))
        low, high = triangular(rng.choice(possible, edges, replace=False))
        lower.append(start + low)
        upper.append(start + high)
    return _packed(np.asarray(topology.graph_ptr), np.concatenate(lower), np.concatenate(upper))


def _packed(graph_ptr: Int, lower: Int, upper: Int) -> Topology:
    """Return the graphs of these edges, each given once."""
    order = np.argsort(upper, kind="stable")
    counts = np.bincount(upper, minlength=int(graph_ptr[-1]))
    row_ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return undirected(Topology(graph_ptr, row_ptr, lower[order]))
