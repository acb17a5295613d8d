"""Small graphs, given by their edges."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import Topology, pointers


def packed(*graphs: tuple[int, list[tuple[int, int]]]) -> Topology:
    """Return undirected graphs, each given as (number of nodes, edges)."""
    sizes = [size for size, _ in graphs]
    graph_ptr = pointers(sizes)
    both = [
        (start + a, start + b)
        for start, (_, edges) in zip(graph_ptr, graphs, strict=False)
        for one, other in edges
        for a, b in ((one, other), (other, one))
    ]
    rows, columns = np.array(sorted(both), np.int64).reshape(-1, 2).T
    return Topology(graph_ptr, pointers(np.bincount(rows, minlength=sum(sizes))), columns)


def thinned(topology: Topology, kept: np.ndarray) -> Topology:
    """Return graphs with some of their edges, bool [E], which may so have one direction."""
    receivers = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    degrees = np.bincount(receivers[kept], minlength=topology.num_nodes)
    return Topology(topology.graph_ptr, pointers(degrees), np.asarray(topology.columns)[kept])


def clique(size: int) -> tuple[int, list[tuple[int, int]]]:
    """Return a graph of which all nodes are joined."""
    return size, [(a, b) for b in range(size) for a in range(b)]


def dense(matrix) -> np.ndarray:
    """Return a CSR matrix written out."""
    found = np.zeros((matrix.num_rows, matrix.width))
    rows = np.repeat(np.arange(matrix.num_rows), np.diff(matrix.pointers))
    np.add.at(found, (rows, matrix.columns[: len(rows)]), matrix.weights[: len(rows)])
    return found
