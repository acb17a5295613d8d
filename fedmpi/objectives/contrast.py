"""Losses of vectors: FCLG's of two views and of frozen copies, and the bound of InfoGraph and MVGRL.

Equations are those of Li, Agrawal, Ramnath and Jin, "Federated contrastive learning of graph-level
representations", 2024.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, normalize, softmax, softplus

LOG_2 = math.log(2.0)
"""Eq. 7 where the two frozen copies are equal, as in the first local epoch; its gradient is 0."""


def intra(first: Tensor, second: Tensor, temperature: float, *, normalised: bool = True) -> Tensor:
    """Return Eq. 5 and 6 (NT-Xent), a scalar: each graph's two views against all others of the batch.

    Parameters
    ----------
    first, second : float32 [B, d]
        Vectors of both views.
    normalised : bool
        Whether vectors are divided by their 2-norm. Eq. 5 prints the plain product, which for sums
        over nodes reaches 1e5 and leaves the softmax without gradient; SimCLR, which it cites, divides.
    """
    vectors = torch.cat([first, second])
    if normalised:
        vectors = normalize(vectors, dim=1)
    scores = vectors @ vectors.T / temperature
    count = len(first)
    own = torch.eye(2 * count, dtype=torch.bool, device=scores.device)
    together = torch.logsumexp(scores.masked_fill(own, -math.inf), dim=1)
    partners = torch.cat([scores.diagonal(count), scores.diagonal(-count)])
    return (together - partners).mean()


def apart(received: Tensor, previous: Tensor) -> Tensor:
    """Return what Eq. 7 needs of the frozen copies, float32 [n, d]: from the received model to the previous.

    Parameters
    ----------
    received, previous : float32 [n, d]
        Vectors of the same graphs (or nodes) under the two models.
    """
    return normalize(previous, dim=1) - normalize(received, dim=1)


def inter(local: Tensor, difference: Tensor, temperature: float) -> Tensor:
    """Return Eq. 7, or Eq. 8 for nodes, a scalar: nearer to the received model than to the previous one.

    Two-way cross-entropy as in MOON (Li, He and Song 2021), similarity by the cosine.

    Parameters
    ----------
    local, difference : float32 [n, d]
        Vectors of graphs (or nodes) under the local model, and `apart` of the same.
    """
    excess = (normalize(local, dim=1) * difference).sum(dim=1)  # of equal copies exactly 0, its gradient too
    return softplus(excess / temperature).mean()


def divergence(local: Tensor, received: Tensor, temperature: float) -> Tensor:
    """Return Eq. 2, a scalar: KL(received || local) of softmax over the dimensions, mean over graphs."""
    theirs = softmax(received / temperature, dim=1)
    return kl_div(log_softmax(local / temperature, dim=1), theirs, reduction="batchmean")


def squared_distance(local: Tensor, received: Tensor, *, normalised: bool = True) -> Tensor:
    """Return Eq. 3, a scalar: squared 2-norm of the difference, mean over graphs.

    `normalised` divides the vectors by their 2-norm first; plain sums over nodes dwarf Eq. 6.
    """
    if normalised:
        local, received = normalize(local, dim=1), normalize(received, dim=1)
    return (local - received).square().sum(dim=1).mean()


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
    positive = (LOG_2 - softplus(-own)).mean()
    others = (softplus(scores) - LOG_2).sum() - (softplus(own) - LOG_2).sum()
    return others / (len(nodes) * (len(graphs) - 1)) - positive
