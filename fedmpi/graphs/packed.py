"""Many graphs packed into a few arrays: one CSR matrix, one feature matrix, one label vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]


def gather_ranges(starts: Int, lengths: Int) -> Int:
    """Return the concatenation of ``range(starts[i], starts[i] + lengths[i])``, vectorised."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    offsets = np.repeat(starts - (ends - lengths), lengths)
    positions: Int = np.arange(total, dtype=np.int64) + offsets
    return positions


def pointers(lengths: npt.ArrayLike) -> Int:
    """Return CSR pointers ``[0, l0, l0+l1, ...]`` of the given lengths."""
    counts = np.asarray(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


@dataclass(frozen=True)
class Topology:
    """Structure of G graphs with N nodes and E directed edges in all.

    Attributes
    ----------
    graph_ptr : int64 [G + 1]
        Graph ``g`` holds nodes ``graph_ptr[g] .. graph_ptr[g + 1] - 1``.
    row_ptr : int64 [N + 1]
        CSR pointers; row = receiving node.
    columns : int64 [E]
        Sending nodes, ascending in each row, numbered over the whole set.
    """

    graph_ptr: Int
    row_ptr: Int
    columns: Int

    @property
    def num_graphs(self) -> int:
        """Number of graphs G."""
        return len(self.graph_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.row_ptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges E."""
        return len(self.columns)

    def nodes_of(self, graphs: Int) -> Int:
        """Return the node numbers of the given graphs, in order."""
        return gather_ranges(self.graph_ptr[graphs], np.diff(self.graph_ptr)[graphs])

    def take(self, graphs: Int) -> Topology:
        """Return the given graphs (repeats allowed) packed anew, nodes renumbered."""
        nodes = self.nodes_of(graphs)
        sizes = np.diff(self.graph_ptr)[graphs]
        graph_ptr = pointers(sizes)
        degrees = np.diff(self.row_ptr)[nodes]
        edges = gather_ranges(self.row_ptr[nodes], degrees)
        shift = np.repeat(graph_ptr[:-1] - self.graph_ptr[graphs], sizes)
        columns = np.asarray(self.columns)[edges] + np.repeat(shift, degrees)
        return Topology(graph_ptr, pointers(degrees), columns)


@dataclass(frozen=True)
class GraphSet:
    """Graphs ready for a model.

    Attributes
    ----------
    topology : Topology
        Structure of the G graphs.
    feature_rows : float32 [K, d]
        Rows that occur as node features: few, where features are discrete.
    node_row : int64 [N]
        Row of each node.
    labels : int64 [G], or float64 [G, T]
        Graph labels, 0-based; or the labels of T tasks, NaN where one is missing.
    edges : uint8 [E, B] or None
        Attributes of the edges, in the order of `Topology.columns`.
    structure : float32 [N, S] or None
        Structure encodings of the nodes.
    """

    topology: Topology
    feature_rows: npt.NDArray[np.float32]
    node_row: Int
    labels: npt.NDArray[Any]
    edges: npt.NDArray[np.uint8] | None = None
    structure: npt.NDArray[np.float32] | None = None

    @property
    def features(self) -> npt.NDArray[np.float32]:
        """Node features, float32 [N, d]."""
        return self.feature_rows[self.node_row]

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return self.topology.num_graphs

    def take(self, graphs: Int) -> GraphSet:
        """Return the given graphs, packed anew."""
        nodes = self.topology.nodes_of(graphs)
        edges = self.edges
        if edges is not None:
            row_ptr = self.topology.row_ptr
            edges = edges[gather_ranges(row_ptr[nodes], np.diff(row_ptr)[nodes])]
        topology, labels = self.topology.take(graphs), self.labels[graphs]
        structure = None if self.structure is None else self.structure[nodes]
        return GraphSet(topology, self.feature_rows, self.node_row[nodes], labels, edges, structure)
