"""Parts of a graph with some nodes hidden, and with generated nodes added."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedmpi.graphs import packed


@dataclass(frozen=True)
class Impaired:
    """A graph without some of its nodes.

    Attributes
    ----------
    topology : Topology
        The n nodes that are left, and the edges between them.
    kept : int64 [n]
        Their numbers in the whole graph, ascending.
    hidden_ptr : int64 [n + 1]
    hidden : int64 [*]
        Hidden neighbours of each node that is left, numbered in the whole graph; node i has those between
        ``hidden_ptr[i]`` and ``hidden_ptr[i + 1]``.
    """

    topology: packed.Topology
    kept: packed.Int
    hidden_ptr: packed.Int
    hidden: packed.Int

    @property
    def missing(self) -> packed.Int:
        """Number of hidden neighbours of each node, int64 [n]."""
        return np.diff(self.hidden_ptr)


def impaired(topology: packed.Topology, hidden: packed.Int) -> Impaired:
    """Return one graph without its hidden nodes, int64 [*]."""
    is_hidden = np.zeros(topology.num_nodes, bool)
    is_hidden[hidden] = True
    kept = np.flatnonzero(~is_hidden)
    degrees = np.diff(topology.row_ptr)[kept]
    columns = np.asarray(topology.columns)[packed.gather_ranges(topology.row_ptr[kept], degrees)]
    lost = is_hidden[columns]
    row = np.repeat(np.arange(len(kept)), degrees)[lost]
    counts = np.bincount(row, minlength=len(kept))
    return Impaired(
        packed.induced(topology, kept)[0], kept, packed.pointers(counts), columns[lost].astype(np.int64)
    )


@dataclass(frozen=True)
class Generated:
    """Nodes to be added to a graph.

    Attributes
    ----------
    neighbours : int64 [G]
        The one node that each is joined to, ascending.
    features : float32 [G, d]
    """

    neighbours: packed.Int
    features: packed.Float


def mended(graphs: packed.GraphSet, generated: Generated) -> packed.GraphSet:
    """Return one graph with generated nodes behind its own; examples are what they were.

    Attributes of their edges, where edges have any, are 0.

    Parameters
    ----------
    graphs : GraphSet
        One graph whose examples are nodes.
    generated : Generated
    """
    table, new = graphs.feature_rows, generated.features
    rows = (
        _joined(table, packed.sparse(new))
        if isinstance(table, packed.SparseRows)
        else np.concatenate([packed.dense(table), new])
    )
    numbers = len(table) + np.arange(len(new))
    topology = with_leaves(graphs.topology, generated.neighbours)
    node_row = np.concatenate([graphs.node_row, numbers])
    edges = graphs.edges
    if edges is not None:
        inserted = np.insert(edges, graphs.topology.row_ptr[generated.neighbours + 1], 0, axis=0)
        edges = np.concatenate([inserted, np.zeros_like(edges, shape=(len(new), edges.shape[1]))])
    return replace(graphs, topology=topology, feature_rows=rows, node_row=node_row, edges=edges)


def with_leaves(topology: packed.Topology, neighbours: packed.Int) -> packed.Topology:
    """Return one graph with further nodes behind its own, each joined to one of these in both directions."""
    first, count = topology.num_nodes, len(neighbours)
    new = first + np.arange(count)
    columns = np.insert(np.asarray(topology.columns), topology.row_ptr[neighbours + 1], new)
    degrees = np.diff(topology.row_ptr) + np.bincount(neighbours, minlength=first)
    row_ptr = packed.pointers(np.concatenate([degrees, np.ones(count, np.int64)]))
    return packed.Topology(np.array([0, first + count]), row_ptr, np.concatenate([columns, neighbours]))


def _joined(first: packed.SparseRows, second: packed.SparseRows) -> packed.SparseRows:
    """Return the rows of two sparse tables of one width."""
    row_ptr = np.concatenate([first.row_ptr, first.row_ptr[-1] + second.row_ptr[1:]])
    columns = np.concatenate([np.asarray(first.columns), np.asarray(second.columns)])
    values = np.concatenate([np.asarray(first.values), np.asarray(second.values)])
    return packed.SparseRows(row_ptr, columns, values, first.width)
