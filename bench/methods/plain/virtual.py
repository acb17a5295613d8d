"""FedVN's network in PyG: a GIN with virtual nodes, whose edges a second GIN scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import relu
from torch_geometric.data import Batch
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool

from plain.network import Drop


class Layers(nn.Module):
    """Linear, and GIN convolutions with batch normalisation."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.pre = nn.Linear(width, hidden)
        self.convs = nn.ModuleList(GINConv(_mlp(hidden)) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers))


class VirtualMlp(nn.Module):
    """Two Linears, each followed by batch normalisation of every virtual node's channels, and ReLU."""

    def __init__(self, nodes: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)
        self.first_norm = nn.BatchNorm1d(nodes * 2 * hidden)
        self.second_norm = nn.BatchNorm1d(nodes * hidden)

    def forward(self, states: Tensor) -> Tensor:
        """Map [B, M, h]."""
        batch, nodes, _ = states.shape
        wide = relu(self.first_norm(self.first(states).reshape(batch, -1))).reshape(batch, nodes, -1)
        return relu(self.second_norm(self.second(wide).reshape(batch, -1))).reshape(batch, nodes, -1)


class Virtual(nn.Module):
    """States of the virtual nodes before the first layer, and an MLP between layers."""

    def __init__(self, nodes: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.states = nn.Parameter(torch.zeros(nodes, hidden))
        self.mlps = nn.ModuleList(VirtualMlp(nodes, hidden) for _ in range(layers - 1))


class VirtualGin(nn.Module):
    """The network; layers of dropout count in the order in which they act: those of the generator first."""

    def __init__(self, width: int, hidden: int, layers: int, classes: int, nodes: int) -> None:
        super().__init__()
        self.gin = Layers(width, hidden, layers)
        self.virtual = Virtual(nodes, hidden, layers)
        self.post, self.readout = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)
        self.generator = Layers(width, hidden, layers)
        self.generator_post, self.generator_readout = nn.Linear(hidden, hidden), nn.Linear(hidden, nodes)

    def score(self, batch: Batch, drop: Drop) -> Tensor:
        """Return the scores, [N, M]."""
        x = self.generator.pre(batch.x)
        for layer, (conv, norm) in enumerate(zip(self.generator.convs, self.generator.norms, strict=True)):
            x = drop(relu(norm(conv(x, batch.edge_index))), layer)
        hidden = drop(relu(self.generator_post(x)), len(self.generator.convs))
        return torch.sigmoid(self.generator_readout(hidden))

    def forward(self, batch: Batch, drop: Drop) -> Tensor:
        """Return logits [B, C]."""
        return self.classify(batch, self.score(batch, drop), drop)

    def classify(self, batch: Batch, score: Tensor, drop: Drop) -> Tensor:
        """Return logits [B, C] with these scores."""
        layers, number = len(self.gin.convs), len(self.gin.convs) + 1
        x, states = self.gin.pre(batch.x), self.virtual.states.expand(batch.num_graphs, -1, -1)
        for layer, (conv, norm) in enumerate(zip(self.gin.convs, self.gin.norms, strict=True)):
            before = x
            x = x + torch.einsum("nm,nmh->nh", score, states[batch.batch])
            x = drop(relu(norm(conv(x, batch.edge_index))), number)
            number += 1
            if layer < layers - 1:
                given = torch.einsum("nm,nh->nmh", score, before).flatten(1)
                sums = global_add_pool(given, batch.batch, batch.num_graphs).view(states.shape)
                states = drop(self.virtual.mlps[layer](states + sums), number)
                number += 1
        pooled = global_mean_pool(x, batch.batch, batch.num_graphs)
        return self.readout(drop(relu(self.post(pooled)), 3 * layers))

    def own(self) -> list[nn.Parameter]:
        """Return the parameters of the edge generator."""
        parts = (self.generator, self.generator_post, self.generator_readout)
        return [each for part in parts for each in part.parameters()]

    def common(self) -> list[nn.Parameter]:
        """Return all others, in the order of the module's."""
        own = {id(each) for each in self.own()}
        return [each for each in self.parameters() if id(each) not in own]

    def travelling(self) -> list[Tensor]:
        """Return what is averaged: the common parameters and their running statistics."""
        named = [each for name, each in self.named_buffers() if each.is_floating_point()]
        own = {id(each) for each in self.generator.buffers()}
        return [*self.common(), *(each for each in named if id(each) not in own)]


def _mlp(hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
