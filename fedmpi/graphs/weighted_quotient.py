"""Equal rows once for layers of weighted sums: GCN's normalised ones, GraphSAGE's means beside own rows.

What `fedmpi.graphs.quotient` and `fedmpi.graphs.levels` are to plain sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedmpi.graphs.csr import Csr, Float, counted
from fedmpi.graphs.levels import Levels
from fedmpi.graphs.packed import GraphSet, Int, Topology, gather_ranges
from fedmpi.graphs.quotient import Classes, Quotient, equal, neighbourhoods, quotient, refined, refinements


def normalised_quotient(graphs: GraphSet) -> Quotient:
    """Return graphs for training by sums ``D^-1/2 (A + I) D^-1/2`` (Kipf and Welling 2017).

    Twins have the same degree and stay one row; in the first layer those are alike that see the same
    features on nodes of the same degrees.
    """
    topology, plain = graphs.topology, quotient(graphs)
    kinds, roots = _kinds(graphs), _roots(topology)
    seen = refined(topology, kinds.of_node.astype(np.uint64))
    twins = plain.members[plain.member_ptr[:-1]]
    return replace(
        plain,
        closed=_scaled(plain.closed, roots[twins], roots[twins][plain.closed.columns]),
        first=_first_sums(graphs, kinds, seen.first),
        first_of=seen.of_node[twins].astype(np.int32),
    )


def normalised_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` such sums without dropout."""
    topology, roots, kinds = graphs.topology, _roots(graphs.topology), _kinds(graphs)
    finer = refinements(topology, kinds.of_node, depth)
    layers = [_first_sums(graphs, kinds, finer[0].first)]
    for before, after in pairwise(finer):
        counts = neighbourhoods(topology, after.first, before.of_node, before.count)
        layers.append(_scaled(counts, roots[after.first], roots[before.first][counts.columns]))
    return _levels(graphs, layers, finer)


def mean_quotient(graphs: GraphSet) -> Quotient:
    """Return graphs for training by means over neighbours, below which every row stands itself.

    Each matrix has two parts: means, then own rows. Twins do not see the same without themselves, so
    every node is a row; in the first layer those are alike that have, and see, the same features.
    """
    topology, width = graphs.topology, len(graphs.feature_rows)
    everybody = np.arange(topology.num_nodes)
    seen = _seen_beside_own(topology, graphs.node_row, width)
    return Quotient(
        labels=graphs.labels,
        node_ptr=np.asarray(topology.graph_ptr),
        num_edges=np.diff(topology.row_ptr[topology.graph_ptr]),
        graph_ptr=np.asarray(topology.graph_ptr),
        closed=_means_and_own(topology, everybody, everybody, topology.num_nodes),
        member_ptr=np.arange(topology.num_nodes + 1, dtype=np.int32),
        members=everybody.astype(np.int32),
        inputs=graphs.feature_rows,
        first=_means_and_own(topology, seen.first, graphs.node_row, width),
        first_of=seen.of_node.astype(np.int32),
        parts=2,
    )


def mean_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` such layers without dropout."""
    colours, width, layers, finer = graphs.node_row, len(graphs.feature_rows), [], []
    for _ in range(depth):
        classes = _seen_beside_own(graphs.topology, colours, width)
        layers.append(_means_and_own(graphs.topology, classes.first, colours, width))
        colours, width = classes.of_node, classes.count
        finer.append(classes)
    return _levels(graphs, layers, finer)


def _levels(graphs: GraphSet, layers: Sequence[Csr], finer: Sequence[Classes]) -> Levels:
    topology, last = graphs.topology, finer[-1]
    graph_of_node = np.repeat(np.arange(topology.num_graphs), np.diff(topology.graph_ptr))
    return Levels(
        inputs=graphs.feature_rows,
        layers=tuple(layers),
        pooling=counted(graph_of_node, last.of_node, topology.num_graphs, last.count),
        counts=tuple(np.bincount(c.of_node, minlength=c.count).astype(np.float32) for c in finer),
        graph_ptrs=(),
        first=tuple(classes.first for classes in finer),
    )


def _degrees(topology: Topology) -> Int:
    return np.diff(topology.row_ptr).astype(np.int64)


def _roots(topology: Topology) -> Float:
    """Return each node's (degree + 1)^-1/2."""
    return ((_degrees(topology) + 1.0) ** -0.5).astype(np.float32)


def _kinds(graphs: GraphSet) -> Classes:
    """Return the classes of nodes with the same features and the same degree."""
    words = graphs.node_row + len(graphs.feature_rows) * _degrees(graphs.topology)
    return equal(words.astype(np.uint64))


def _first_sums(graphs: GraphSet, kinds: Classes, nodes: Int) -> Csr:
    """Return the normalised sums of some nodes as a matrix on feature rows, [nodes, K0]."""
    counts = neighbourhoods(graphs.topology, nodes, kinds.of_node, kinds.count)
    roots, seen = _roots(graphs.topology), kinds.first[counts.columns]
    rows = graphs.node_row[seen].astype(np.int32)
    return replace(_scaled(counts, roots[nodes], roots[seen]), columns=rows, width=len(graphs.feature_rows))


def _seen_beside_own(topology: Topology, colours: Int, width: int) -> Classes:
    """Return the classes of nodes of one colour whose neighbours' colours are the same."""
    closed = refined(topology, colours.astype(np.uint64)).of_node
    return equal((closed * width + colours).astype(np.uint64))


def _means_and_own(topology: Topology, nodes: Int, class_of_node: Int, width: int) -> Csr:
    """Return means over the neighbours of some nodes, by class, and below them the nodes' own classes."""
    degrees = _degrees(topology)[nodes]
    rows = np.repeat(np.arange(len(nodes)), degrees)
    seen = class_of_node[np.asarray(topology.columns)[gather_ranges(topology.row_ptr[nodes], degrees)]]
    counts = counted(rows, seen, len(nodes), width)
    inverse = np.divide(1, degrees, out=np.zeros(len(nodes), np.float32), where=degrees > 0)
    means = _scaled(counts, inverse, np.ones(counts.num_entries, np.float32))
    starts = means.num_entries + np.arange(1, len(nodes) + 1)
    return Csr(
        np.concatenate([means.pointers, starts]).astype(np.int32),
        np.concatenate([means.columns, class_of_node[nodes]]).astype(np.int32),
        np.concatenate([means.weights, np.ones(len(nodes), np.float32)]),
        width,
    )


def _scaled(matrix: Csr, rows: Float, entries: Float) -> Csr:
    """Return a matrix times a factor per row and one per entry."""
    return replace(matrix, weights=matrix.weights * np.repeat(rows, np.diff(matrix.pointers)) * entries)
