"""Rows of a pass without dropout: nodes of the same *colour*, refined l times, have equal rows in layer l."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedmpi.graphs.csr import Csr, Float, Short, counted
from fedmpi.graphs.packed import GraphSet, Int, pointers
from fedmpi.graphs.refinement.quotient import NO_BONDS, Classes, neighbourhoods, refinements


@dataclass(frozen=True)
class Levels:
    """What an evaluation without dropout computes: one row per colour in every layer.

    Attributes
    ----------
    inputs : float32 [K0, d]
        Distinct feature rows.
    layers : tuple of Csr
        Layer l: colours of depth l by colours of depth l - 1 (the first: by rows of `inputs`).
    pooling : Csr
        Graphs by colours of the last depth.
    counts : tuple of float32 [K]
        Nodes of each colour, by depth.
    graph_ptrs : tuple of int32 [G + 1]
        Colours of each graph, by depth, where graphs have colours of their own; else none.
    first : tuple of int64 [K]
        First node of each colour, by depth.
    bonds : float32 [K, A]
        Distinct attributes of edges, for layers that read them.
    """

    inputs: Float
    layers: tuple[Csr, ...]
    pooling: Csr
    counts: tuple[Float, ...]
    graph_ptrs: tuple[Short, ...]
    first: tuple[Int, ...]
    bonds: Float


def levels(graphs: GraphSet, depth: int, *, by_graph: bool = False, apart: Int | None = None) -> Levels:
    """Refine colours `depth` times and return the matrices from one depth to the next.

    Parameters
    ----------
    graphs : GraphSet
        G graphs with N nodes.
    depth : int
        Layers of the network.
    by_graph : bool, optional
        Nodes of different graphs get different colours, for layers in which a node's output depends on
        its whole graph.
    apart : int64 [N], optional
        Nodes with different numbers get different colours.
    """
    topology, colours, width = graphs.topology, graphs.node_row, len(graphs.feature_rows)
    graph_of_node = np.repeat(np.arange(topology.num_graphs), np.diff(topology.graph_ptr))
    kinds = graph_of_node if by_graph else apart
    finer = refinements(topology, colours if kinds is None else colours + width * kinds, depth)
    layers = []
    for classes in finer:
        layers.append(neighbourhoods(topology, classes.first, colours, width))
        colours, width = classes.of_node, classes.count
    found = from_classes(graphs, layers, finer)
    if not by_graph:
        return found
    sizes = (np.bincount(graph_of_node[each.first], minlength=topology.num_graphs) for each in finer)
    return replace(found, graph_ptrs=tuple(pointers(each).astype(np.int32) for each in sizes))


def from_classes(
    graphs: GraphSet, layers: Sequence[Csr], finer: Sequence[Classes], bonds: Float = NO_BONDS
) -> Levels:
    """Return levels of these matrices, from one depth to the next, and the classes of nodes behind them."""
    topology, last = graphs.topology, finer[-1]
    graph_of_node = np.repeat(np.arange(topology.num_graphs), np.diff(topology.graph_ptr))
    return Levels(
        inputs=graphs.table,
        layers=tuple(layers),
        pooling=counted(graph_of_node, last.of_node, topology.num_graphs, last.count),
        counts=tuple(np.bincount(c.of_node, minlength=c.count).astype(np.float32) for c in finer),
        graph_ptrs=(),
        first=tuple(classes.first for classes in finer),
        bonds=bonds,
    )
