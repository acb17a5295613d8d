"""Graphs whose nodes are examples, as compiled kernels take them: each layer has the rows that are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.products import Floats
from fedmpi.graphs.refinement import weighted
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.graphs.refinement.quotient import NO_BONDS, Quotient, neighbourhoods
from fedmpi.kernels.sparse_map import Features, features_of


class _Sums(NamedTuple):
    """What a layer sums up for every node: see `Quotient`, whose `closed` is the matrix."""

    matrix: Csr
    parts: int = 1
    bonds: Floats = NO_BONDS


@dataclass(frozen=True)
class NodeBatch:
    """Graphs of which some nodes are examples.

    The last layer has a row for each example, and a layer before that has the rows that the next one reads.

    Attributes
    ----------
    graphs : GraphSet
    make : callable
        Makes the same of other graphs.
    inputs : float32 [n, d] or SparseFeatures
        Features of the nodes that the first layer reads.
    layers : tuple of Quotient
        Matrix and nodes of each layer; every node is a row of its own.
    pooling : Csr
        Each example's row of the last layer.
    """

    graphs: GraphSet
    make: Callable[[GraphSet], NodeBatch]
    inputs: Features
    layers: tuple[Quotient, ...]
    pooling: Csr

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Labels of the examples."""
        return self.graphs.labels

    @property
    def num_rows(self) -> int:
        """Rows of the last layer."""
        return self.layers[-1].num_rows

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of graphs, nodes, directed edges and examples."""
        topology = self.graphs.topology
        return topology.num_graphs, topology.num_nodes, topology.num_edges, len(self.labels)

    def at(self, number: int) -> Quotient:
        """Return what layer `number` works on."""
        return self.layers[number]

    def take(self, graphs: Int) -> NodeBatch:
        """Return some of the graphs, packed anew."""
        return self.make(self.graphs.take(graphs))

    @property
    def levels(self) -> Levels:
        """The same for evaluations."""
        return Levels(
            inputs=self.inputs,  # type: ignore[arg-type] # which `SparseMap` takes
            layers=tuple(layer.closed for layer in self.layers),
            pooling=self.pooling,
            counts=tuple(layer.counts for layer in self.layers),
            graph_ptrs=tuple(layer.graph_ptr.astype(np.int32) for layer in self.layers),
            first=(),
            bonds=self.layers[0].bonds,
        )


def node_batch(name: str, depth: int, graphs: GraphSet, *, whole: bool) -> NodeBatch:
    """Return graphs for a network.

    Parameters
    ----------
    name : str
        Of the model.
    depth : int
        Number of sums, one after another.
    graphs : GraphSet
        With nodes as examples.
    whole : bool
        Whether every layer has all nodes.
    """
    assert graphs.places is not None
    everybody, sums = np.arange(graphs.topology.num_nodes), _SUMS[name](graphs)
    needed = everybody if whole else np.unique(graphs.places)
    places = np.searchsorted(needed, graphs.places).astype(np.int32)
    ends = np.arange(len(places) + 1, dtype=np.int32)
    pooling = Csr(ends, places, np.ones(len(places), np.float32), len(needed))
    layers: list[Quotient] = []
    for _ in range(depth):
        matrix, read = (sums.matrix, everybody) if whole else _of_rows(sums, needed)
        layers.insert(0, _layer(graphs, sums, matrix, needed))
        needed = read
    inputs = features_of(graphs.feature_rows, graphs.node_row[needed])
    return NodeBatch(graphs, partial(node_batch, name, depth, whole=whole), inputs, tuple(layers), pooling)


def _of_rows(sums: _Sums, nodes: Int) -> tuple[Csr, Int]:
    """Return the sums of some nodes, and the nodes that they read."""
    parts = np.arange(sums.parts)[:, None]
    matrix, read, _ = sums.matrix.take((nodes + sums.matrix.width * parts).ravel()).compacted()
    return matrix, read


def _layer(graphs: GraphSet, sums: _Sums, matrix: Csr, nodes: Int) -> Quotient:
    topology, ends = graphs.topology, np.arange(len(nodes) + 1, dtype=np.int32)
    return Quotient(
        labels=graphs.labels,
        node_ptr=topology.graph_ptr,
        num_edges=np.diff(topology.row_ptr[topology.graph_ptr]),
        graph_ptr=topology.graph_ptr,
        closed=matrix,
        member_ptr=ends,
        members=nodes.astype(np.int32),
        inputs=NO_BONDS,
        first=matrix,
        first_of=ends[:-1],
        parts=sums.parts,
        bonds=sums.bonds,
    )


def _plain(graphs: GraphSet) -> _Sums:
    everybody = np.arange(graphs.topology.num_nodes)
    return _Sums(neighbourhoods(graphs.topology, everybody, everybody, len(everybody)))


def _normalised(graphs: GraphSet) -> _Sums:
    return _Sums(weighted.normalised_sums(graphs.topology))


def _beside_own(quotient: Callable[[GraphSet], Quotient], graphs: GraphSet) -> _Sums:
    """Return the sums of a quotient in which features tell all nodes apart."""
    nodes = np.arange(graphs.topology.num_nodes)
    found = quotient(replace(graphs, feature_rows=np.zeros((len(nodes), 0), np.float32), node_row=nodes))
    return _Sums(found.closed, found.parts, found.bonds)


_SUMS: dict[str, Callable[[GraphSet], _Sums]] = {
    "gin": _plain,
    "gcn": _normalised,
    "sgc": _normalised,
    "sage": partial(_beside_own, weighted.mean_quotient),
    "gat": partial(_beside_own, weighted.attention_quotient),
    "mpnn": partial(_beside_own, weighted.message_quotient),
}
"""What a layer sums up, by the model's name."""
