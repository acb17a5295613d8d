"""Batches of a view of a client's graphs with equal rows once; nothing about a row is random.

Nodes of the same *colour*, refined l times, have the same sums in layer l, whatever the parameters:
their closed neighbourhoods hold the same colours of depth l - 1, under the same weights. Colours are
found once for all graphs; a batch numbers those that occur in it. Unlike the levels of an evaluation
(`fedmpi.graphs.refinement.levels`) batches are taken often, so the neighbourhoods' entries stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.graphs.csr import Csr, Float, Short
from fedmpi.graphs.diffusion import WeightedTopology
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import GraphSet, Int, gather_ranges, pointers
from fedmpi.graphs.products import multiply_sparse, padded
from fedmpi.graphs.refinement.quotient import Words, equal
from fedmpi.graphs.streams import word
from fedmpi.seeds import mixed

_SETTLED = 1.1
"""Where all depths together tell apart at most so many times the classes that depth 1 does, these are the
colours of every depth: a few rows more, and structure that the layers have in common."""


@dataclass(frozen=True)
class Layer:
    """Rows of one layer: one per colour of a batch of N nodes.

    Attributes
    ----------
    sums : Csr [K, K']
        What each row sums up: rows of the layer before, as often as they occur. In the first layer
        the identity, as `Rows.inputs` are sums.
    counts : float32 [K]
        Nodes of each row.
    pooling : Csr [B, K]
        Graphs by rows, an entry for each node.
    """

    sums: Csr
    counts: Float
    pooling: Csr


@dataclass(frozen=True)
class NodeClasses:
    """Nodes that are alike in all layers.

    Attributes
    ----------
    first : int64 [C]
        A node of each class, numbered over all graphs of the client.
    pooling : Csr [B, C]
        Graphs by classes, an entry for each node.
    counts : float32 [C]
        Nodes of each class.
    rows : tuple of int32 [C]
        Row of each class in every layer.
    """

    first: Int
    pooling: Csr
    counts: Float
    rows: tuple[Short, ...]

    @property
    def class_of_node(self) -> Short:
        """Class of each node of the batch, int32 [N]."""
        return self.pooling.columns


@dataclass(frozen=True)
class Rows:
    """A view of B graphs with N nodes as a network without dropout takes it.

    Attributes
    ----------
    inputs : float32 [K1, d]
        Sums of the features over the closed neighbourhoods, d padded to a multiple of 16.
    layers : tuple of Layer
    node_classes : NodeClasses or None
        None where no vectors of nodes are asked for.
    num_nodes : int
    num_edges : int
        Directed edges.
    weighted : bool
        Whether edges have weights.
    """

    inputs: Float
    layers: tuple[Layer, ...]
    node_classes: NodeClasses | None
    num_nodes: int
    num_edges: int
    weighted: bool

    @property
    def num_graphs(self) -> int:
        """Number of graphs B."""
        return self.layers[0].pooling.num_rows


class ColouredGraphs:
    """A view of a client's graphs, and the colours of their nodes.

    Parameters
    ----------
    graphs : GraphSet
    view : WeightedTopology or None
        Edges with weights in place of the graphs' own.
    depth : int
        Layers of the network.
    by_node : bool
        Whether vectors of nodes will be asked for.
    """

    def __init__(self, graphs: GraphSet, view: WeightedTopology | None, depth: int, *, by_node: bool) -> None:
        topology = graphs.topology if view is None else view.topology
        ones = np.ones(topology.num_edges, np.float32)
        self.weighted = view is not None
        self._graph_ptr = np.array(topology.graph_ptr, np.int64)
        self._row_ptr = np.array(topology.row_ptr, np.int64)
        self._columns = np.array(topology.columns, np.int32)
        self._weights = ones if view is None else np.array(view.weights, np.float32)
        self._colours = self._refined(graphs.node_row.astype(np.int32), depth)
        classes = self._joint()
        if _kinds(classes) <= _SETTLED * _kinds(self._colours[1]):
            self._colours[1:] = [classes] * depth
        self._kinds = [_kinds(colours) for colours in self._colours]
        self._classes = classes if by_node else None
        self._inputs = self._first_sums(graphs)

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self._graph_ptr) - 1

    def _refined(self, colours: Short, depth: int) -> list[Short]:
        """Return the colours of all nodes, by depth from 0."""
        itself = mixed(np.ones(1, np.float32).view(np.uint32).astype(np.uint64))[0]
        edges = mixed(self._weights.view(np.uint32).astype(np.uint64))
        found = [colours]
        for _ in range(depth):
            words = mixed(found[-1].astype(np.uint64))
            sums = _hashed_sums(self._row_ptr, self._columns, edges, words, itself)
            found.append(equal(sums).of_node.astype(np.int32))
        return found

    def _joint(self) -> Short:
        """Return classes of nodes that have the same colour at every depth from 1."""
        words = np.zeros(len(self._colours[0]), np.uint64)
        for colours in self._colours[1:]:
            words = mixed(words + colours.astype(np.uint64))
        return equal(words).of_node.astype(np.int32)

    def _first_sums(self, graphs: GraphSet) -> Float:
        """Return the first layer's sums for every colour of depth 1, padded."""
        kinds, width = graphs.feature_rows.shape
        features = np.zeros((kinds, padded(width)), np.float32)
        features[:, :width] = graphs.table
        nodes = np.arange(len(self._colours[0]))
        _, first, _, _ = _numbered(self._colours[1], self._kinds[1], nodes)
        sums = np.empty((len(first), features.shape[1]), np.float32)
        same = np.arange(kinds, dtype=np.int32)
        multiply_sparse(*self._entries(first, self._colours[0], same), features, sums)
        return sums

    def _entries(self, first: Int, colours: Short, place: Short) -> tuple[Short, Short, Float]:
        return _closed_entries(self._row_ptr, self._columns, self._weights, first, colours, place)

    def take(self, graphs: Int | None) -> Rows:
        """Return the given graphs, in order; None stands for all."""
        chosen = np.arange(self.num_graphs) if graphs is None else graphs
        sizes = np.diff(self._graph_ptr)[chosen]
        nodes = gather_ranges(self._graph_ptr[chosen], sizes)
        graph_ptr = pointers(sizes).astype(np.int32)
        ones = np.ones(len(nodes), np.float32)
        layers: list[Layer] = []
        places: list[Short] = []
        inputs = self._inputs[:0]
        for depth in range(1, len(self._colours)):
            if depth > 2 and self._colours[depth] is self._colours[depth - 2]:
                layers.append(layers[-1])
                places.append(places[-1])
                continue
            of_node, first, place, counts = _numbered(self._colours[depth], self._kinds[depth], nodes)
            if depth == 1:
                inputs, sums = self._inputs[self._colours[1][first]], _identity(len(first))
            else:
                entries = self._entries(first, self._colours[depth - 1], places[-1])
                sums = Csr(*entries, layers[-1].sums.num_rows)
            layers.append(Layer(sums, counts, Csr(graph_ptr, of_node, ones, len(first))))
            places.append(place)
        edges = int(
            (self._row_ptr[self._graph_ptr[chosen + 1]] - self._row_ptr[self._graph_ptr[chosen]]).sum()
        )
        node_classes = self._node_classes(nodes, graph_ptr, places)
        return Rows(inputs, tuple(layers), node_classes, len(nodes), edges, self.weighted)

    def _node_classes(self, nodes: Int, graph_ptr: Short, places: list[Short]) -> NodeClasses | None:
        """Return the classes of a batch's nodes, if any are asked for."""
        if self._classes is None:
            return None
        of_node, first, _, counts = _numbered(self._classes, _kinds(self._classes), nodes)
        colours = self._colours[1:]
        rows = tuple(place[each[first]] for place, each in zip(places, colours, strict=True))
        pooling = Csr(graph_ptr, of_node, np.ones(len(nodes), np.float32), len(first))
        return NodeClasses(first, pooling, counts, rows)


def _kinds(colours: Short) -> int:
    return int(colours.max(initial=-1)) + 1


def _identity(size: int) -> Csr:
    numbers = np.arange(size + 1, dtype=np.int32)
    return Csr(numbers, numbers[:-1].copy(), np.ones(size, np.float32), size)


@compiled
def _hashed_sums(row_ptr: Int, columns: Short, edges: Words, words: Words, itself: np.uint64) -> Words:
    """Return a hash of each closed neighbourhood's multiset of pairs (weight, colour), [N]."""
    sums = np.empty_like(words)
    for node in range(len(words)):
        total = word(words[node], itself)
        for e in range(row_ptr[node], row_ptr[node + 1]):
            total += word(words[columns[e]], edges[e])
        sums[node] = total
    return sums


@compiled
def _numbered(colours: Short, kinds: int, nodes: Int) -> tuple[Short, Int, Short, Float]:
    """Give the colours of some nodes numbers as they occur.

    Parameters
    ----------
    colours : int32 [N]
        Below `kinds`.
    nodes : int64 [n]

    Returns
    -------
    of_node : int32 [n]
        New number of each node's colour.
    first : int64 [K]
        First node of each.
    place : int32 [kinds]
        New number of each colour; -1 where it does not occur.
    counts : float32 [K]
    """
    place, count = np.full(kinds, -1, np.int32), 0
    of_node, first = np.empty(len(nodes), np.int32), np.empty(len(nodes), np.int64)
    counts = np.zeros(len(nodes), np.float32)
    for i in range(len(nodes)):
        colour = colours[nodes[i]]
        if place[colour] < 0:
            place[colour], first[count] = count, nodes[i]
            count += 1
        of_node[i] = place[colour]
        counts[of_node[i]] += np.float32(1.0)
    return of_node, first[:count].copy(), place, counts[:count].copy()


@compiled
def _closed_entries(
    row_ptr: Int, columns: Short, weights: Float, first: Int, colours: Short, place: Short
) -> tuple[Short, Short, Float]:
    """Return the closed neighbourhoods of the nodes `first` [K] as rows of a matrix, themselves last.

    Column of a neighbour is ``place[colours[neighbour]]``.
    """
    starts = np.zeros(len(first) + 1, np.int32)
    for r in range(len(first)):
        starts[r + 1] = starts[r] + row_ptr[first[r] + 1] - row_ptr[first[r]] + 1
    taken, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    for r in range(len(first)):
        at = starts[r]
        for e in range(row_ptr[first[r]], row_ptr[first[r] + 1]):
            taken[at], values[at] = place[colours[columns[e]]], weights[e]
            at += 1
        taken[at], values[at] = place[colours[first[r]]], np.float32(1.0)
    return starts, taken, values
