"""What programs ask of nodes, and passes of compiled kernels where examples are nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.program import Nodes
from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.passes import Counted, Embedded, Work
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Rows, Topology

Floats = npt.NDArray[np.float32]


def every_node(topology: Topology, features: Rows, node_row: npt.NDArray[np.int64] | None = None) -> GraphSet:
    """Return graphs of which every node is an example, of class 0.

    Parameters
    ----------
    topology : Topology
    features : float32 [K, d] or SparseRows
    node_row : int64 [N], optional
        Row of each node; by default its own.
    """
    nodes = np.arange(topology.num_nodes)
    rows = nodes if node_row is None else node_row
    return GraphSet(topology, features, rows, np.zeros_like(nodes), places=nodes)


def nodes_of(
    graphs: GraphSet, logits: Floats, normalised_sum: Callable[[torch.Tensor], torch.Tensor], work: list[Work]
) -> Nodes:
    """Return what a model gives of all nodes of the training graphs; later sums go to `work`.

    Parameters
    ----------
    graphs : GraphSet
    logits : float32 [N, C]
    normalised_sum : callable
        `Batch.normalised_sum` of the graphs.
    work : list of Work
    """
    topology, places = graphs.topology, graphs.places
    assert places is not None

    @torch.no_grad()
    def propagate(rows: npt.NDArray[Any]) -> Floats:
        values = torch.from_numpy(np.ascontiguousarray(rows, np.float32))
        additions = (topology.num_edges + topology.num_nodes) * values.shape[1]
        work.append(Counted(additions, additions))
        summed: Floats = normalised_sum(values).cpu().numpy()
        return summed

    return Nodes(logits, np.diff(topology.row_ptr), places, graphs.labels, propagate)


class NodePasses(CompiledPasses):
    """`CompiledPasses` of a `FastNodeNetwork`."""

    @property
    def graphs(self) -> GraphSet:
        """Training graphs."""
        graphs: GraphSet = self._batch.graphs
        return graphs

    @cached_property
    def _everything(self) -> tuple[Any, Callable[[torch.Tensor], torch.Tensor]]:
        """The graphs as an evaluation of all nodes takes them, and their normalised sums."""
        graphs = self.graphs
        part = self._part(every_node(graphs.topology, graphs.feature_rows, graphs.node_row))
        return part, Batch.of(graphs).normalised_sum

    def nodes(self, work: list[Work]) -> Nodes:
        """Return outputs for all nodes of the training graphs; the pass and later sums go to `work`."""
        part, normalised_sum = self._everything
        logits = self._kernels.logits(part[0]).copy()
        work.append(Embedded(logits, *part[2]))
        return nodes_of(self.graphs, logits, normalised_sum, work)

    def mean_state(self, topology: Topology, features: Floats) -> Embedded:
        """Return the mean over the nodes of another graph of what the head would see of each.

        Parameters
        ----------
        topology : Topology
        features : float32 [N, width]
        """
        found = self._embed(self._part(every_node(topology, features)))
        return replace(found, rows=found.rows.mean(axis=0, dtype=np.float64))
