"""The bound of InfoGraph and MVGRL: nodes tell their own graph from the others of the batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus


@dataclass(frozen=True)
class Classes:
    """Nodes that have one vector together.

    Attributes
    ----------
    class_of_node : int64 [N]
    counts : float32 [C]
        Nodes of each class.
    """

    class_of_node: Tensor
    counts: Tensor


def jensen_shannon(
    nodes: Tensor, graphs: Tensor, graph_of_node: Tensor, classes: Classes | None = None
) -> Tensor:
    """Return the negative Jensen-Shannon bound of the mutual information of nodes and graphs, a scalar.

    With scores s = nodes graphs^T, the mean over all pairs of a node and another graph of
    ``softplus(-s) + s - log 2``, minus the mean over nodes with their own graph of ``log 2 -
    softplus(-s)`` (Sun, Hoffman, Verma and Tang 2020; Nowozin, Cseke and Tomioka 2016). The official
    codes multiply scores by masks, which adds zeros: the same.

    Parameters
    ----------
    nodes : float32 [N, d], or [C, d]
    graphs : float32 [B, d]
        B >= 2.
    graph_of_node : int64 [N]
    classes : Classes, optional
        By default every node has a vector of its own.
    """
    scores, count = nodes @ graphs.T, len(graph_of_node)
    pairs = softplus(scores) - math.log(2.0)
    if classes is None:
        own = (nodes * graphs[graph_of_node]).sum(dim=1)
        every = pairs.sum()
    else:
        own = scores.reshape(-1)[classes.class_of_node * len(graphs) + graph_of_node]
        every = torch.dot(pairs.sum(dim=1), classes.counts)
    alike = (math.log(2.0) - softplus(-own)).mean()
    others = every - (softplus(own) - math.log(2.0)).sum()
    return others / (count * (len(graphs) - 1)) - alike
