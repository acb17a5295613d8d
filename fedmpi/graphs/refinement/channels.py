"""Graphs for a network of two channels, of which one reads nothing but structure, as FedStar's.

That channel has no dropout, so in training too nodes that are alike up to l steps away have equal rows
in layer l, of whatever graph they are: it has one row for each such colour. The other channel's rows,
twin classes in training and colours of features and structure in evaluation, each read one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedmpi.graphs.csr import Csr, Float, Short, counted
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.refinement.levels import Levels, levels
from fedmpi.graphs.refinement.quotient import Classes, Quotient, equal, neighbourhoods, quotient, refinements
from fedmpi.seeds import mixed


@dataclass(frozen=True)
class Structure:
    """Rows of the structure channel.

    Attributes
    ----------
    inputs : float32 [K0, S + 1]
        Structure encodings that occur, once for each degree of their nodes, and a column of ones for a bias.
    roots : tuple of float32 [K]
        1 / sqrt(degree + 1) of each colour's nodes, by depth from 0.
    layers : tuple of Csr
        Layer l: how often a colour of depth l sees each of depth l - 1, itself included.
    pooling : Csr
        How many nodes of each colour of the last depth the B graphs have.
    sizes : float32 [B]
        Nodes of each graph.
    """

    inputs: Float
    roots: tuple[Float, ...]
    layers: tuple[Csr, ...]
    pooling: Csr
    sizes: Float

    def take(self, graphs: Int) -> tuple[Structure, list[Short]]:
        """Return the rows of the given graphs, and the new number of each old row, by depth from 1."""
        pooling, used, place = self.pooling.take(graphs).compacted()
        layers: list[Csr] = []
        roots, places = [self.roots[-1][used]], [place]
        for depth in reversed(range(len(self.layers))):
            layer, used, place = self.layers[depth].take(used).compacted()
            layers.insert(0, layer)
            roots.insert(0, self.roots[depth][used])
            places.insert(0, place)
        inputs, sizes = self.inputs[used], self.sizes[graphs]
        return Structure(inputs, tuple(roots), tuple(layers), pooling, sizes), places[1:]


@dataclass(frozen=True)
class ChannelBatch:
    """Graphs for training.

    Attributes
    ----------
    rows : Quotient
        The other channel's; its first layer has a row for every twin class.
    structure : Structure
    colours : tuple of int32 [Q]
        Row of the structure channel that each twin class reads, by depth from 1.
    """

    rows: Quotient
    structure: Structure
    colours: tuple[Short, ...]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of graphs, nodes and directed edges."""
        return self.rows.sizes

    def take(self, graphs: Int) -> ChannelBatch:
        """Return the given graphs, packed anew."""
        structure, places = self.structure.take(graphs)
        rows = self.rows.rows_of(graphs)
        colours = [place[of_row[rows]] for place, of_row in zip(places, self.colours, strict=True)]
        return ChannelBatch(self.rows.take(graphs), structure, tuple(colours))


@dataclass(frozen=True)
class ChannelLevels:
    """Graphs for an evaluation; attributes as those of `ChannelBatch`, for colours by depth."""

    rows: Levels
    structure: Structure
    colours: tuple[Short, ...]


def channel_batch(graphs: GraphSet, depth: int) -> ChannelBatch:
    """Divide the nodes of graphs with structure encodings for `depth` layers of training."""
    rows = quotient(graphs)
    everybody = np.arange(rows.num_rows, dtype=np.int32)
    rows = replace(rows, first=rows.first.take(rows.first_of.astype(np.int64)), first_of=everybody)
    structure, classes = _structure(graphs, depth)
    nodes = rows.members[rows.member_ptr[:-1]]
    return ChannelBatch(rows, structure, tuple(each.of_node[nodes].astype(np.int32) for each in classes[1:]))


def channel_levels(graphs: GraphSet, depth: int) -> ChannelLevels:
    """Divide the nodes of graphs with structure encodings for `depth` layers of evaluation."""
    structure, classes = _structure(graphs, depth)
    rows = levels(graphs, depth, apart=classes[0].of_node)
    pairs = zip(classes[1:], rows.first, strict=True)
    return ChannelLevels(
        rows, structure, tuple(each.of_node[first].astype(np.int32) for each, first in pairs)
    )


def _structure(graphs: GraphSet, depth: int) -> tuple[Structure, list[Classes]]:
    """Return the structure channel's rows, and the classes of nodes behind them, by depth from 0."""
    assert graphs.structure is not None
    topology, degrees = graphs.topology, np.diff(graphs.topology.row_ptr)
    start = _alike(graphs.structure, degrees)
    classes = [start, *refinements(topology, start.of_node, depth)]
    layers = [
        neighbourhoods(topology, finer.first, coarser.of_node, coarser.count)
        for coarser, finer in pairwise(classes)
    ]
    sizes, last = np.diff(topology.graph_ptr), classes[-1]
    graph_of_node = np.repeat(np.arange(topology.num_graphs), sizes)
    found = Structure(
        inputs=np.pad(graphs.structure[start.first], ((0, 0), (0, 1)), constant_values=1.0),
        roots=tuple((1 / np.sqrt(degrees[each.first] + 1.0)).astype(np.float32) for each in classes),
        layers=tuple(layers),
        pooling=counted(graph_of_node, last.of_node, topology.num_graphs, last.count),
        sizes=sizes.astype(np.float32),
    )
    return found, classes


def _alike(encodings: Float, degrees: Int) -> Classes:
    """Return the classes of nodes with equal encodings and degrees, by a 64-bit hash of both."""
    words = mixed(degrees.astype(np.uint64))
    for number, column in enumerate(np.ascontiguousarray(encodings.T).view(np.uint32)):
        words += mixed(column.astype(np.uint64) + (np.uint64(number + 1) << np.uint64(32)))
    return equal(words)
