"""Many graphs packed into a few arrays: one CSR matrix, one feature matrix, one label vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float32]

EdgeAttributes = npt.NDArray[np.uint8 | np.float32]
"""A row for each edge; bonds of molecules have a byte in each column, others a float32."""


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


def induced(topology: Topology, nodes: Int) -> tuple[Topology, Int]:
    """Return the graph of some nodes and the edges between them, and these edges' places among all.

    Parameters
    ----------
    topology : Topology
    nodes : int64 [n]
        Distinct; node ``i`` of the result is ``nodes[i]``.
    """
    place = np.full(topology.num_nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    degrees = np.diff(topology.row_ptr)[nodes]
    edges = gather_ranges(topology.row_ptr[nodes], degrees)
    columns = place[np.asarray(topology.columns)[edges]]
    inside = columns >= 0
    row = np.repeat(np.arange(len(nodes)), degrees)[inside]
    order = np.lexsort((columns[inside], row))
    row_ptr = pointers(np.bincount(row, minlength=len(nodes)))
    return Topology(np.array([0, len(nodes)]), row_ptr, columns[inside][order]), edges[inside][order]


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix of K rows in CSR form.

    Attributes
    ----------
    row_ptr : int64 [K + 1]
    columns : int [nnz]
        Ascending in each row.
    values : float32 [nnz]
    width : int
        Number of columns d.
    """

    row_ptr: Int
    columns: Int
    values: Float
    width: int

    def __len__(self) -> int:
        """Return the number of rows K."""
        return len(self.row_ptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """K and d."""
        return len(self), self.width

    def take(self, rows: Int) -> SparseRows:
        """Return the given rows, repeats allowed."""
        lengths = np.diff(self.row_ptr)[rows]
        entries = gather_ranges(np.asarray(self.row_ptr)[rows], lengths)
        return SparseRows(
            pointers(lengths), np.asarray(self.columns)[entries], np.asarray(self.values)[entries], self.width
        )

    def dense(self) -> Float:
        """Return the same as an array, float32 [K, d]."""
        found = np.zeros(self.shape, np.float32)
        found[np.repeat(np.arange(len(self)), np.diff(self.row_ptr)), self.columns] = self.values
        return found


Rows = Float | SparseRows
"""A table of feature rows [K, d]."""


def dense(rows: Rows) -> Float:
    """Return a table as an array, float32 [K, d]."""
    return rows.dense() if isinstance(rows, SparseRows) else rows


def sparse(rows: Float) -> SparseRows:
    """Return a table without its zeros."""
    row, column = np.nonzero(rows)
    row_ptr = pointers(np.bincount(row, minlength=len(rows)))
    return SparseRows(row_ptr, column, rows[row, column], rows.shape[1])


def take(rows: Rows, numbers: Int) -> Rows:
    """Return the given rows of a table."""
    return rows.take(numbers) if isinstance(rows, SparseRows) else rows[numbers]


@dataclass(frozen=True)
class GraphSet:
    """Graphs ready for a model.

    Attributes
    ----------
    topology : Topology
        Structure of the G graphs.
    feature_rows : float32 [K, d] or SparseRows
        Rows that occur as node features: few, where features are discrete.
    node_row : int64 [N]
        Row of each node.
    labels : int64 [n], or float64 [n, T]
        Labels of the examples, 0-based; or those of T tasks, NaN where one is missing.
    edges : uint8 or float32 [E, B], or None
        Attributes of the edges, in the order of `Topology.columns`.
    structure : float32 [N, S] or None
        Structure encodings of the nodes.
    places : int64 [n] or [n, 2], or None
        Node, or pair of nodes, that each example is, in the order of the graphs; None: examples are graphs.
    weights : float32 [G] or None
        What each graph counts in the training loss, where examples are graphs; None: all count alike.
    """

    topology: Topology
    feature_rows: Rows
    node_row: Int
    labels: npt.NDArray[Any]
    edges: EdgeAttributes | None = None
    structure: npt.NDArray[np.float32] | None = None
    places: Int | None = None
    weights: npt.NDArray[np.float32] | None = None

    @property
    def table(self) -> Float:
        """Feature rows as an array, float32 [K, d]."""
        return dense(self.feature_rows)

    @property
    def features(self) -> Float:
        """Node features, float32 [N, d]."""
        return dense(take(self.feature_rows, self.node_row))

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
        topology, structure = self.topology.take(graphs), self.structure
        structure = None if structure is None else structure[nodes]
        chosen, places = examples_in(self.topology, self.places, graphs)
        weights = None if self.weights is None else self.weights[graphs]
        own = self.feature_rows, self.node_row[nodes], self.labels[chosen]
        return GraphSet(topology, *own, edges, structure, places, weights)


def examples_in(topology: Topology, places: Int | None, graphs: Int) -> tuple[Int, Int | None]:
    """Return the examples of some graphs, and their places when these graphs are packed anew.

    Parameters
    ----------
    topology : Topology
    places : int64 [n] or [n, 2], or None
        See `GraphSet`.
    graphs : int64 [*]
        Graph numbers, repeats allowed.
    """
    if places is None:
        return graphs, None
    first = places if places.ndim == 1 else places[:, 0]
    graph_of = np.searchsorted(topology.graph_ptr, first, side="right") - 1
    cuts = np.searchsorted(graph_of, np.arange(topology.num_graphs + 1))
    counts = np.diff(cuts)[graphs]
    chosen = gather_ranges(cuts[graphs], counts)
    starts = pointers(np.diff(topology.graph_ptr)[graphs])[:-1]
    moved = np.repeat(starts - topology.graph_ptr[graphs], counts)
    return chosen, places[chosen] + (moved if places.ndim == 1 else moved[:, None])
