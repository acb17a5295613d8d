"""Compiled networks that classify nodes: the layers of `FastGraphNetwork`, a head for each example."""

from __future__ import annotations

from typing import Any, ClassVar

from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.kernels.graph_network import FastGraphNetwork, OfNetwork
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.node_batch import NodeBatch, node_batch
from fedmpi.kernels.node_head import FastNodeHead, FastNodeReadout, FastReadout
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.sparse_map import SparseMap
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import SgcOptions


class FastNodeNetwork(FastGraphNetwork):
    """Kernels of one model shape for graphs whose nodes are examples.

    Parameters
    ----------
    options, model, scratch, kind
        As of `FastGraphNetwork`.
    """

    _one_layer: ClassVar[type[FastReadout]] = FastNodeReadout
    _two_layers: ClassVar[type[FastHead]] = FastNodeHead

    def __init__(self, options: OfNetwork, model: FlatModel, scratch: Scratch, kind: int) -> None:
        super().__init__(options, model, scratch, kind)
        self._by_mean, self._inputs = False, SparseMap(model, "pre")

    def prepare(self, graphs: GraphSet) -> Any:
        """Return graphs as `step` takes them, all or some of them: a `NodeBatch`."""
        return self._batch(graphs, len(self._layers), whole=isinstance(self._options, SgcOptions))

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them."""
        return self._batch(graphs, self._options.layers).levels

    def _batch(self, graphs: GraphSet, depth: int, *, whole: bool = False) -> NodeBatch:
        """Return graphs for so many sums; normalisations read all nodes of a graph."""
        return node_batch(self._options.name, depth, graphs, whole=whole or bool(self._options.norms))
