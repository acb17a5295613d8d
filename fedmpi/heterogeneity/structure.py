"""Graphs as the analyses see them: undirected and simple, as one block-diagonal matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Int, Topology

if TYPE_CHECKING:
    from scipy import sparse


def adjacency(topology: Topology) -> sparse.csr_array:
    """Return the 0/1 adjacency matrix of all graphs, int64 [N, N], symmetric."""
    from scipy import sparse  # takes an eighth of a second to import, and ranks that only train need none

    shape = (topology.num_nodes, topology.num_nodes)
    ones = np.ones(topology.num_edges, np.int64)
    directed = sparse.csr_array((ones, topology.columns, topology.row_ptr), shape=shape)
    either = (directed + directed.T).tocsr()
    either.sort_indices()
    either.data[:] = 1
    return either


def undirected(topology: Topology) -> Topology:
    """Return the same graphs with every edge in both directions."""
    matrix = adjacency(topology)
    columns, row_ptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return Topology(np.asarray(topology.graph_ptr), row_ptr, columns)


def graph_of_node(topology: Topology) -> Int:
    """Return the graph number of each node, int64 [N]."""
    return np.repeat(np.arange(topology.num_graphs), np.diff(topology.graph_ptr))


def mean_by_graph(values: npt.NDArray[np.float64], topology: Topology) -> npt.NDArray[np.float64]:
    """Return the mean over each graph's nodes, float64 [G]; NaN for a graph without nodes."""
    sums = np.bincount(graph_of_node(topology), weights=values, minlength=topology.num_graphs)
    sizes = np.diff(topology.graph_ptr)
    means: npt.NDArray[np.float64] = np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0)
    return means
