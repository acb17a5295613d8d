"""The network of the plain methods, and vectors of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import relu
from torch.nn.utils import parameters_to_vector
from torch_geometric.data import Batch
from torch_geometric.nn import GINConv, global_add_pool

Drop = Callable[[Tensor, int], Tensor]
"""Dropout of a layer's output in a step; its arguments are the output and the layer's number."""


def no_drop(x: Tensor, layer: int) -> Tensor:
    """Return x: evaluations have no dropout."""
    return x


class Gin(nn.Module):
    """Linear, GIN convolutions with layer norm, sum pooling (an embedding), Linear with ReLU, Linear."""

    def __init__(self, width: int, hidden: int, layers: int, classes: int) -> None:
        super().__init__()
        self.pre = nn.Linear(width, hidden)
        self.convs = nn.ModuleList(GINConv(_mlp(hidden)) for _ in range(layers))
        self.post = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, classes)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))

    def embed(self, batch: Batch, drop: Drop) -> Tensor:
        """Return the sums over the nodes of each graph, [B, h]."""
        x = self.pre(batch.x)
        for layer, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = drop(relu(norm(conv(x, batch.edge_index))), layer)
        return global_add_pool(x, batch.batch, batch.num_graphs)

    def represent(self, embedding: Tensor, drop: Drop) -> Tensor:
        """Return what the last layer sees, [B, h]."""
        return drop(relu(self.post(embedding)), len(self.convs))

    def forward(self, batch: Batch, drop: Drop) -> Tensor:
        """Return logits [B, C]."""
        return self.readout(self.represent(self.embed(batch, drop), drop))

    def head(self) -> list[nn.Parameter]:
        """Return the parameters of the layers after the pooling."""
        return [*self.post.parameters(), *self.readout.parameters()]

    def body(self) -> list[nn.Parameter]:
        """Return those of the layers before it."""
        return [*self.pre.parameters(), *self.convs.parameters(), *self.norms.parameters()]


def _mlp(hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))


def vector(model: Gin, part: str = "parameters") -> Tensor:
    """Return a copy of parameters as one vector."""
    return parameters_to_vector(getattr(model, part)()).detach().clone()


@torch.no_grad()
def assign(values: Tensor, parameters: Iterable[nn.Parameter]) -> None:
    """Copy a vector into parameters (torch's own function makes them views of it)."""
    taken = 0
    for parameter in parameters:
        parameter.copy_(values[taken : taken + parameter.numel()].view_as(parameter))
        taken += parameter.numel()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take a step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
