"""The compiled losses as autograd sees them: value and gradients come from one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import padded
from fedmpi.kernels import loss_loops as kernels
from fedmpi.kernels.feed_forward import with_columns


class _JensenShannon(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, nodes: Tensor, graphs: Tensor, members: Csr) -> Tensor:
        count, width = graphs.shape
        rows = with_columns(nodes, len(nodes))
        others = with_columns(graphs, padded(count))
        of_nodes, of_graphs = np.empty_like(rows), np.empty_like(others)
        transposed = np.ascontiguousarray(others.T)
        loss = kernels.jensen_shannon(
            rows, others, transposed, count, members.pointers, members.columns, of_nodes, of_graphs
        )
        ctx.gradients = torch.from_numpy(of_nodes[:, :width]), torch.from_numpy(of_graphs[:count, :width])
        return torch.tensor(loss, dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        of_nodes, of_graphs = ctx.gradients
        return of_nodes * gradients[0], of_graphs * gradients[0], None


class _Inter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, difference: Tensor, counts: Tensor, temperature: float) -> Tensor:
        ctx.gradient = torch.empty_like(local)
        vectors, others, nodes = (each.detach().contiguous().numpy() for each in (local, difference, counts))
        loss = kernels.inter(vectors, others, nodes, temperature, ctx.gradient.numpy())
        return torch.tensor(loss, dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.gradient * gradients[0], None, None, None


def jensen_shannon(nodes: Tensor, graphs: Tensor, members: Csr) -> Tensor:
    """Return `fedmpi.objectives.contrast.jensen_shannon` of classes of nodes.

    Parameters
    ----------
    nodes : float32 [C, d]
    graphs : float32 [B, d]
        B >= 2.
    members : Csr [C, B]
        The graph of every node of each class.
    """
    return _JensenShannon.apply(nodes, graphs, members)  # type: ignore[no-any-return, no-untyped-call]


def inter(local: Tensor, difference: Tensor, counts: Tensor, temperature: float) -> Tensor:
    """Return `fedmpi.objectives.contrast.inter`, row c counted ``counts[c]`` times.

    Parameters
    ----------
    local, difference : float32 [C, d]
        Vectors of node classes under the local model, and `apart` of the same.
    counts : float32 [C]
        Nodes of each class.
    temperature : float
    """
    return _Inter.apply(local, difference, counts, temperature)  # type: ignore[no-any-return, no-untyped-call]
