"""Equal rows once for layers that are no plain sums: GCN's, and those that read a node's own row apart.

What `fedmpi.graphs.refinement.quotient` and `fedmpi.graphs.refinement.levels` are to plain sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.graphs.csr import Csr, Float, counted
from fedmpi.graphs.packed import GraphSet, Int, Topology, gather_ranges, pointers
from fedmpi.graphs.refinement.levels import Levels, from_classes
from fedmpi.graphs.refinement.quotient import (
    NO_BONDS,
    Classes,
    Quotient,
    equal,
    neighbourhoods,
    quotient,
    refined,
    refinements,
)
from fedmpi.seeds import mixed


@dataclass(frozen=True)
class _Bonds:
    """Distinct attributes of edges, float32 [K, A], and the number of each edge's, int64 [E]."""

    of_edge: Int
    rows: Float


_Above = Callable[[Int, Int, Int, int, Int], Csr]
"""From the edges' receivers (numbered) and senders (by class), the receivers' own classes, the number of
classes and the edges' places in the topology to the upper part of a matrix."""


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


def normalised_sums(topology: Topology) -> Csr:
    """Return the matrix ``D^-1/2 (A + I) D^-1/2``, each node a row."""
    everybody, roots = np.arange(topology.num_nodes), _roots(topology)
    counts = neighbourhoods(topology, everybody, everybody, len(everybody))
    return _scaled(counts, roots, roots[counts.columns])


def normalised_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` such sums without dropout."""
    topology, roots, kinds = graphs.topology, _roots(graphs.topology), _kinds(graphs)
    finer = refinements(topology, kinds.of_node, depth)
    layers = [_first_sums(graphs, kinds, finer[0].first)]
    for before, after in pairwise(finer):
        counts = neighbourhoods(topology, after.first, before.of_node, before.count)
        layers.append(_scaled(counts, roots[after.first], roots[before.first][counts.columns]))
    return from_classes(graphs, layers, finer)


def mean_quotient(graphs: GraphSet) -> Quotient:
    """Return graphs for training by means over neighbours, below which every row stands itself.

    Each matrix has two parts: means, then own rows. Twins do not see the same without themselves, so
    every node is a row; in the first layer those are alike that have, and see, the same features.
    """
    return _quotient_beside_own(graphs, graphs.topology, _means, None)


def attention_quotient(graphs: GraphSet) -> Quotient:
    """Return graphs for training by GAT's attention over closed neighbourhoods, own rows below.

    Like `mean_quotient`; a node that is its own neighbour attends to itself once, as in torch-geometric.
    """
    return _quotient_beside_own(graphs, _without_loops(graphs.topology), _closed, None)


def message_quotient(graphs: GraphSet) -> Quotient:
    """Return graphs for training by messages along edges, own rows below.

    Like `mean_quotient`; edges from one class with the same attributes are one entry, whose weight is K times
    their number plus the place of the attributes among the K rows of `bonds`.
    """
    bonds = _bonds(graphs)
    return _quotient_beside_own(graphs, graphs.topology, _bonded(bonds), bonds)


def _quotient_beside_own(
    graphs: GraphSet, topology: Topology, above: _Above, bonds: _Bonds | None
) -> Quotient:
    width, everybody = len(graphs.feature_rows), np.arange(topology.num_nodes)
    seen = _seen_beside_own(topology, graphs.node_row, width, bonds)
    return Quotient(
        labels=graphs.labels,
        node_ptr=np.asarray(topology.graph_ptr),
        num_edges=np.diff(graphs.topology.row_ptr[graphs.topology.graph_ptr]),
        graph_ptr=np.asarray(topology.graph_ptr),
        closed=_beside_own(above, topology, everybody, everybody, topology.num_nodes),
        member_ptr=np.arange(topology.num_nodes + 1, dtype=np.int32),
        members=everybody.astype(np.int32),
        inputs=graphs.table,
        first=_beside_own(above, topology, seen.first, graphs.node_row, width),
        first_of=seen.of_node.astype(np.int32),
        parts=2,
        bonds=NO_BONDS if bonds is None else bonds.rows,
    )


def mean_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` such layers without dropout."""
    return _levels_beside_own(graphs, graphs.topology, depth, _means, None)


def attention_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` layers of attention without dropout."""
    return _levels_beside_own(graphs, _without_loops(graphs.topology), depth, _closed, None)


def message_levels(graphs: GraphSet, depth: int) -> Levels:
    """Return graphs for `depth` layers of messages without dropout."""
    bonds = _bonds(graphs)
    return _levels_beside_own(graphs, graphs.topology, depth, _bonded(bonds), bonds)


def _levels_beside_own(
    graphs: GraphSet, topology: Topology, depth: int, above: _Above, bonds: _Bonds | None
) -> Levels:
    colours, width, layers, finer = graphs.node_row, len(graphs.feature_rows), [], []
    for _ in range(depth):
        classes = _seen_beside_own(topology, colours, width, bonds)
        layers.append(_beside_own(above, topology, classes.first, colours, width))
        colours, width = classes.of_node, classes.count
        finer.append(classes)
    return from_classes(graphs, layers, finer, NO_BONDS if bonds is None else bonds.rows)


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


def _without_loops(topology: Topology) -> Topology:
    """Return the topology without edges from a node to itself."""
    receivers, columns = _receivers(topology), np.asarray(topology.columns)
    kept = receivers != columns
    if kept.all():
        return topology
    degrees = np.bincount(receivers[kept], minlength=topology.num_nodes)
    return Topology(topology.graph_ptr, pointers(degrees), columns[kept])


def _receivers(topology: Topology) -> Int:
    return np.repeat(np.arange(topology.num_nodes), _degrees(topology))


def _bonds(graphs: GraphSet) -> _Bonds:
    """Return the edges' distinct attributes, numbered."""
    if graphs.edges is None or graphs.edges.shape[1] == 0:
        return _Bonds(np.zeros(graphs.topology.num_edges, np.int64), NO_BONDS)
    count, width = graphs.edges.shape
    size = width * graphs.edges.itemsize
    content = np.ascontiguousarray(graphs.edges).view(np.uint8).reshape(count, size)
    padding = np.zeros((count, -size % 8), np.uint8)
    words = np.concatenate([content, padding], axis=1).view(np.uint64)  # sorted far faster than bytes
    alike = words[:, 0] if words.shape[1] == 1 else words
    _, first, numbers = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return _Bonds(numbers.reshape(-1).astype(np.int64), graphs.edges[first].astype(np.float32))


def _seen_beside_own(topology: Topology, colours: Int, width: int, bonds: _Bonds | None) -> Classes:
    """Return the classes of nodes of one colour with the same neighbours' colours and bonds to them."""
    if bonds is None or len(bonds.rows) <= 1:
        closed = refined(topology, colours.astype(np.uint64)).of_node
        return equal((closed * width + colours).astype(np.uint64))
    words = mixed((colours[topology.columns] + width * bonds.of_edge).astype(np.uint64))
    sums = np.zeros(topology.num_nodes, np.uint64)
    np.add.at(sums, _receivers(topology), words)
    seen = equal(sums).of_node
    return equal((seen * width + colours).astype(np.uint64))


def _beside_own(above: _Above, topology: Topology, nodes: Int, class_of_node: Int, width: int) -> Csr:
    """Return what some nodes see of their neighbours, by class, and below it the nodes' own classes."""
    degrees = _degrees(topology)[nodes]
    rows = np.repeat(np.arange(len(nodes)), degrees)
    edges = gather_ranges(topology.row_ptr[nodes], degrees)
    seen, own = class_of_node[np.asarray(topology.columns)[edges]], class_of_node[nodes]
    neighbours = above(rows, seen, own, width, edges)
    starts = neighbours.num_entries + np.arange(1, len(nodes) + 1)
    return Csr(
        np.concatenate([neighbours.pointers, starts]).astype(np.int32),
        np.concatenate([neighbours.columns, own]).astype(np.int32),
        np.concatenate([neighbours.weights, np.ones(len(nodes), np.float32)]),
        width,
    )


def _means(rows: Int, seen: Int, own: Int, width: int, edges: Int) -> Csr:
    """Return means over neighbours."""
    counts, degrees = counted(rows, seen, len(own), width), np.bincount(rows, minlength=len(own))
    inverse = np.divide(1, degrees, out=np.zeros(len(own), np.float32), where=degrees > 0)
    return _scaled(counts, inverse, np.ones(counts.num_entries, np.float32))


def _closed(rows: Int, seen: Int, own: Int, width: int, edges: Int) -> Csr:
    """Return how often each class occurs among the neighbours and the node itself."""
    everybody = np.arange(len(own))
    return counted(np.concatenate([rows, everybody]), np.concatenate([seen, own]), len(own), width)


def _bonded(bonds: _Bonds) -> _Above:
    """Return what counts edges from each class by each kind."""
    kinds = len(bonds.rows)

    def above(rows: Int, seen: Int, own: Int, width: int, edges: Int) -> Csr:
        pairs = counted(rows, seen * kinds + bonds.of_edge[edges], len(own), width * kinds)
        numbers = pairs.weights * kinds + pairs.columns % kinds
        if numbers.max(initial=0) >= 1 << 24:
            raise BadInput(
                f"the edges of a client have {kinds:,} different attributes, too many for compiled kernels: "
                'use kernels = "csr"'
            )
        return Csr(pairs.pointers, pairs.columns // kinds, numbers.astype(np.float32), width)

    return above


def _scaled(matrix: Csr, rows: Float, entries: Float) -> Csr:
    """Return a matrix times a factor per row and one per entry."""
    return replace(matrix, weights=matrix.weights * np.repeat(rows, np.diff(matrix.pointers)) * entries)
