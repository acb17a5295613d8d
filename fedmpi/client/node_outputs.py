"""What a client's trained model gives of the nodes of its graphs, for algorithms that ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.program import Nodes
from fedmpi.client.passes import Counted, Embedded, Work
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.errors import RankFailed
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Topology


def nodes_of(passes: TorchPasses, work: list[Work]) -> Nodes:
    """Return outputs for all nodes of a client's training graphs; the pass and later sums go to `work`.

    Parameters
    ----------
    passes : TorchPasses
        Of a task whose examples are nodes.
    work : list of Work

    Raises
    ------
    RankFailed
        Examples are no nodes.
    """
    places = passes.train.places
    if places is None or places.ndim != 1:
        raise RankFailed(
            "`nodes` was asked for, and examples are no nodes: name the tasks of nodes in `tasks`"
        )
    batch = passes.batch(None)
    everything = torch.arange(batch.topology.num_nodes, device=batch.x.device)
    found = passes.forward(batch.with_examples(everything, torch.zeros_like(everything)), head=True)
    work.append(found)
    entries = batch.topology.num_edges + batch.topology.num_nodes

    @torch.no_grad()
    def propagate(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        values = torch.from_numpy(np.ascontiguousarray(rows, np.float32)).to(batch.x.device)
        additions = entries * values.shape[1]
        work.append(Counted(additions, additions))
        summed: npt.NDArray[np.float32] = batch.normalised_sum(values).cpu().numpy()
        return summed

    logits = torch.as_tensor(found.rows).cpu().numpy()
    return Nodes(logits, np.diff(batch.topology.row_ptr), places, passes.train.labels, propagate)


def mean_state_of(
    passes: TorchPasses, topology: Topology, features: npt.NDArray[np.float32], device: torch.device
) -> Embedded:
    """Return the mean over the nodes of another graph of what the head would see of each.

    Parameters
    ----------
    passes : TorchPasses
        Whose model is asked.
    topology : Topology
    features : float32 [N, width]
    device : torch.device
        Of the model.
    """
    nodes = np.arange(topology.num_nodes)
    graphs = GraphSet(topology, features, nodes, np.zeros_like(nodes), places=nodes)
    found = passes.forward(Batch.of(graphs, device), head=False)
    return replace(found, rows=found.rows.double().mean(dim=0).cpu().numpy())
