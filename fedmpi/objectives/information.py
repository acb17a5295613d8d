"""The bound of InfoGraph and MVGRL: nodes tell their own graph from the others of the batch."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus


def jensen_shannon(nodes: Tensor, graphs: Tensor, graph_of_node: Tensor) -> Tensor:
    """Return the negative Jensen-Shannon bound of the mutual information of nodes and graphs, a scalar.

    With scores s = nodes graphs^T, the mean over all pairs of a node and another graph of
    ``softplus(-s) + s - log 2``, minus the mean over nodes with their own graph of ``log 2 -
    softplus(-s)`` (Sun, Hoffman, Verma and Tang 2020; Nowozin, Cseke and Tomioka 2016). The official
    codes multiply scores by masks, which adds zeros: the same.

    Parameters
    ----------
    nodes : float32 [N, d]
    graphs : float32 [B, d]
        B >= 2.
    graph_of_node : int64 [N]
    """
    scores = nodes @ graphs.T
    own = (nodes * graphs[graph_of_node]).sum(dim=1)
    positive = (math.log(2.0) - softplus(-own)).mean()
    others = (softplus(scores) - math.log(2.0)).sum() - (softplus(own) - math.log(2.0)).sum()
    return others / (len(nodes) * (len(graphs) - 1)) - positive
