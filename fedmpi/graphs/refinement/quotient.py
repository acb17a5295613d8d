"""Structure with equal rows computed once: exact, because equal inputs have equal outputs.

Nodes with the same closed neighbourhood (*twins*, frequent in social networks)
get the same sum over neighbours in every layer; nodes whose closed
neighbourhoods hold the same features get the same sum in the first layer; without
dropout there are fewer rows still (`fedmpi.graphs.refinement.levels`). Equality of
neighbourhoods is that of 64-bit hashes of multisets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr, Float, Short, counted, taken_members
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import GraphSet, Int, Topology, gather_ranges, pointers
from fedmpi.seeds import mixed

Words = npt.NDArray[np.uint64]

DENSE = 8
"""Edges per node beyond which twins are worth counting: social networks, not molecules or proteins."""


NO_BONDS = np.zeros((1, 0), np.float32)
"""Attributes of edges that have none: all are of one kind."""

_FEW_BONDS = 1000
"""Different attributes of edges that a batch keeps, whether its edges have them or not."""


@dataclass(frozen=True)
class Classes:
    """A division of nodes into classes, numbered by their first nodes.

    Attributes
    ----------
    of_node : int64 [N]
        Class of each node.
    first : int64 [K]
        First node of each class.
    """

    of_node: Int
    first: Int

    @property
    def count(self) -> int:
        """Number of classes K."""
        return len(self.first)


def equal(words: Words) -> Classes:
    """Return the classes of equal words."""
    _, first, of_node = np.unique(words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Classes(rank[of_node], first[order])


def refined(topology: Topology, values: Words) -> Classes:
    """Return the classes of equal multisets of values over closed neighbourhoods."""
    return equal(_closed_sums(topology.row_ptr, topology.columns, mixed(values)))


def refinements(topology: Topology, values: Int, depth: int) -> list[Classes]:
    """Return the classes of nodes that are alike up to 1, 2, ..., `depth` steps away."""
    found: list[Classes] = []
    for _ in range(depth):
        found.append(refined(topology, values.astype(np.uint64)))
        values = found[-1].of_node
    return found


@compiled
def _closed_sums(row_ptr: Int, columns: Int, words: Words) -> Words:
    sums = words.copy()
    for node in range(len(row_ptr) - 1):
        total = words[node]
        for e in range(row_ptr[node], row_ptr[node + 1]):
            total += words[columns[e]]
        sums[node] = total
    return sums


def neighbourhoods(topology: Topology, nodes: Int, class_of_node: Int, width: int) -> Csr:
    """Return for each of `nodes` how often each class occurs in its closed neighbourhood.

    Parameters
    ----------
    topology : Topology
        N nodes.
    nodes : int64 [n]
        Nodes whose neighbourhoods are counted: the rows.
    class_of_node : int64 [N]
    width : int
        Number of classes: the columns.
    """
    degrees = np.diff(topology.row_ptr)[nodes]
    edges = gather_ranges(topology.row_ptr[nodes], degrees)
    rows = np.concatenate([np.repeat(np.arange(len(nodes)), degrees), np.arange(len(nodes))])
    ends = np.concatenate([np.asarray(topology.columns)[edges], nodes])
    return counted(rows, class_of_node[ends], len(nodes), width)


@dataclass(frozen=True)
class Quotient:
    """Graphs for training with dropout: one row per twin class in every layer but the first.

    Attributes
    ----------
    labels : int64 [B]
        Labels of the B graphs.
    node_ptr : int64 [B + 1]
        Graph g has the nodes ``node_ptr[g] .. node_ptr[g + 1] - 1``, N in all.
    num_edges : int64 [B]
        Directed edges of each graph.
    graph_ptr : int64 [B + 1]
        Graph g has the twin classes ``graph_ptr[g] .. graph_ptr[g + 1] - 1``, Q in all.
    closed : Csr [parts Q, Q]
        Closed neighbourhoods: class q sums over the classes that its nodes see, each once.
    member_ptr, members : int32 [Q + 1], int32 [N]
        Nodes of each class.
    inputs : float32 [K0, d]
        Feature rows.
    first : Csr [parts K1, K0]
        What each first-layer class sums up: feature rows and how often.
    first_of : int32 [Q]
        First-layer class of each twin class.
    bonds : float32 [K, A]
        Distinct attributes of edges, for layers that read them.
    parts : int
        Matrices one above the other in `closed` and in `first`, which then have so many times the rows.
    """

    labels: Int
    node_ptr: Int
    num_edges: Int
    graph_ptr: Int
    closed: Csr
    member_ptr: Short
    members: Short
    inputs: Float
    first: Csr
    first_of: Short
    parts: int = 1
    bonds: Float = field(default_factory=lambda: NO_BONDS)

    @property
    def num_rows(self) -> int:
        """Number of twin classes Q."""
        return len(self.first_of)

    @cached_property
    def pooling(self) -> Csr:
        """Sums over each graph's classes, [B, Q]."""
        columns = np.arange(self.num_rows, dtype=np.int32)
        ones = np.ones(self.num_rows, np.float32)
        return Csr(self.graph_ptr.astype(np.int32), columns, ones, self.num_rows)

    @cached_property
    def counts(self) -> Float:
        """Nodes of each class, float32 [Q]."""
        return np.diff(self.member_ptr).astype(np.float32)

    @cached_property
    def largest_class(self) -> int:
        """Nodes of the largest twin class."""
        return int(np.diff(self.member_ptr).max(initial=0))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of graphs, nodes and directed edges."""
        return len(self.labels), int(self.node_ptr[-1]), int(self.num_edges.sum())

    def at(self, layer: int) -> Quotient:
        """Return what a layer works on: every layer has the same rows."""
        return self

    def rows_of(self, graphs: Int) -> Int:
        """Return the numbers of the given graphs' twin classes, in order."""
        return gather_ranges(self.graph_ptr[graphs], np.diff(self.graph_ptr)[graphs])

    def take(self, chosen: Int) -> Quotient:
        """Return the given graphs, packed anew.

        First-layer classes stay those of all graphs where they are fewer than half of
        the rows; else each row becomes a class of its own.
        """
        parts, classes = np.arange(self.parts)[:, None], self.first.num_rows // self.parts
        sizes = np.diff(self.graph_ptr)[chosen]
        rows = self.rows_of(chosen)
        graph_ptr, node_ptr = pointers(sizes), pointers(np.diff(self.node_ptr)[chosen])
        row_shifts = np.repeat(graph_ptr[:-1] - self.graph_ptr[chosen], sizes)
        node_shifts = np.repeat(node_ptr[:-1] - self.node_ptr[chosen], sizes)
        member_ptr, members = taken_members(self.member_ptr, self.members, rows, node_shifts)
        first, first_of, inputs = self.first, self.first_of[rows], self.inputs
        if 2 * classes > len(rows):
            first = first.take((first_of + classes * parts).ravel().astype(np.int64))
            first_of = np.arange(len(rows), dtype=np.int32)
            if 2 * first.width > first.num_entries:
                first, used, _ = first.compacted()
                inputs = inputs[used]
        blocks = (rows + self.num_rows * parts).ravel()
        closed, bonds = (
            self.closed.take_blocks(blocks, np.tile(row_shifts, self.parts), len(rows)),
            self.bonds,
        )
        if len(bonds) > max(_FEW_BONDS, closed.num_entries):
            closed, first, bonds = _with_their_bonds(closed, first, bonds)
        return Quotient(
            labels=self.labels[chosen],
            node_ptr=node_ptr,
            num_edges=self.num_edges[chosen],
            graph_ptr=graph_ptr,
            closed=closed,
            member_ptr=member_ptr,
            members=members,
            inputs=inputs,
            first=first,
            first_of=first_of,
            parts=self.parts,
            bonds=bonds,
        )


def _with_their_bonds(closed: Csr, first: Csr, bonds: Float) -> tuple[Csr, Csr, Float]:
    """Return matrices of messages, numbered by the attributes of edges that they name, and these alone.

    See `fedmpi.graphs.refinement.weighted.message_quotient`; the lower half of both are own rows.
    """
    counts, kinds = [], []
    for matrix in (closed, first):
        numbers = matrix.weights[: matrix.pointers[matrix.num_rows // 2]].astype(np.int64)
        counts.append(numbers // len(bonds))
        kinds.append(numbers % len(bonds))
    used, place = np.unique(np.concatenate(kinds), return_inverse=True)
    messages = np.concatenate(counts) * len(used) + place
    upper, others = np.split(messages.astype(np.float32), [len(counts[0])])
    return (
        replace(closed, weights=np.concatenate([upper, closed.weights[len(upper) :]])),
        replace(first, weights=np.concatenate([others, first.weights[len(others) :]])),
        bonds[used],
    )


def twin_classes(topology: Topology) -> tuple[Classes, Csr]:
    """Return classes of nodes with the same closed neighbourhood, and what each class sees.

    Where edges have a direction, nodes that see the same need not be seen by the
    same: then a class would count too much, and every node is a class of its own.
    So it is where a node sees itself or another more than once.
    """
    twins = refined(topology, np.arange(topology.num_nodes, dtype=np.uint64))
    closed = neighbourhoods(topology, twins.first, twins.of_node, twins.count)
    if np.array_equal(closed.weights, np.bincount(twins.of_node)[closed.columns]):
        return twins, Csr(closed.pointers, closed.columns, np.ones_like(closed.weights), closed.width)
    everybody = np.arange(topology.num_nodes)
    return Classes(everybody, everybody), neighbourhoods(topology, everybody, everybody, topology.num_nodes)


def twin_counts(topology: Topology) -> tuple[Int, Int]:
    """Return how many rows and entries each graph's quotient has, int64 [G] each.

    Only looked for where nodes have more than `DENSE` edges on average: elsewhere twins are rare
    and every node counts.
    """
    sizes = np.diff(topology.graph_ptr)
    if topology.num_edges <= DENSE * topology.num_nodes:
        return sizes, np.diff(topology.row_ptr[topology.graph_ptr]) + sizes
    twins, closed = twin_classes(topology)
    graph_of_row = np.repeat(np.arange(topology.num_graphs), sizes)[twins.first]
    rows = np.bincount(graph_of_row, minlength=topology.num_graphs)
    entries = np.bincount(graph_of_row, np.diff(closed.pointers), topology.num_graphs).astype(np.int64)
    return rows, entries


def quotient(graphs: GraphSet) -> Quotient:
    """Divide nodes into twin classes and first-layer classes."""
    topology = graphs.topology
    twins, closed = twin_classes(topology)
    seen = refined(topology, graphs.node_row.astype(np.uint64))
    graph_of_node = np.repeat(np.arange(topology.num_graphs), np.diff(topology.graph_ptr))
    sizes = np.bincount(graph_of_node[twins.first], minlength=topology.num_graphs)
    members = np.argsort(twins.of_node, kind="stable").astype(np.int32)
    member_ptr = pointers(np.bincount(twins.of_node, minlength=twins.count)).astype(np.int32)
    width = len(graphs.feature_rows)
    first = neighbourhoods(topology, seen.first, graphs.node_row, width)
    first_of = seen.of_node[twins.first].astype(np.int32)
    return Quotient(
        labels=graphs.labels,
        node_ptr=np.asarray(topology.graph_ptr),
        num_edges=np.diff(topology.row_ptr[topology.graph_ptr]),
        graph_ptr=pointers(sizes),
        closed=closed,
        member_ptr=member_ptr,
        members=members,
        inputs=graphs.table,
        first=first,
        first_of=first_of,
    )
