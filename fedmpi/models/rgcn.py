"""RGCN with blocks of weights for each relation, and DistMult as its head (Schlichtkrull et al. 2018).

A node's next state is ``W_0 x`` plus, for each relation in each direction, the mean of ``W_r x`` over its
neighbours by that relation. ``W_r`` is block-diagonal. The head gives each relation r a score of a pair
(h, t), ``sum over k of h_k R_rk t_k`` (Yang et al. 2015).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import RgcnOptions, Shape


class _Messages(torch.autograd.Function):
    """Sum over all relations of the normalised messages, [N, h]; states of edges are made anew backward.

    All of them together take gigabytes on knowledge graphs.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, edges: list[tuple[int, Tensor, Tensor, Tensor]]
    ) -> Tensor:
        """Return the sums.

        Parameters
        ----------
        x : float32 [N, h]
        weight : float32 [relations, blocks, h / blocks, h / blocks]
        edges : list of (relation, senders [E_r], receivers [E_r], factors [E_r, 1])
        """
        ctx.save_for_backward(x, weight)
        ctx.edges = edges
        total = torch.zeros_like(x)
        for relation, sender, receiver, factor in edges:
            total.index_add_(0, receiver, _by_blocks(x[sender], weight[relation]) * factor)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of states and weights."""
        x, weight = ctx.saved_tensors
        to_x, to_weight = torch.zeros_like(x), torch.zeros_like(weight)
        blocks, width = weight.shape[1:3]
        for relation, sender, receiver, factor in ctx.edges:
            gradient = gradients[0][receiver] * factor
            to_x.index_add_(0, sender, _by_blocks(gradient, weight[relation].transpose(1, 2)))
            inputs = x[sender].view(-1, blocks, width).transpose(0, 1)
            outputs = gradient.view(-1, blocks, width).transpose(0, 1)
            to_weight[relation] = inputs.transpose(1, 2) @ outputs
        return to_x, to_weight, None


def _by_blocks(x: Tensor, weight: Tensor) -> Tensor:
    """Return x [E, h] times a block-diagonal matrix of blocks [b, h / b, h / b]."""
    blocks, width = weight.shape[:2]
    return (x.view(-1, blocks, width).transpose(0, 1) @ weight).transpose(0, 1).reshape(len(x), -1)


class RgcnConv(nn.Module):
    """One layer for R relations, each in both directions; h to h."""

    def __init__(self, hidden: int, blocks: int, relations: int) -> None:
        super().__init__()
        width = hidden // blocks
        self.weight = nn.Parameter(torch.empty(2 * relations, blocks, width, width))
        self.root = nn.Linear(hidden, hidden)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrices anew, as Glorot and Bengio (2010)."""
        bound = math.sqrt(3 / self.weight.shape[-1])
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Return the nodes' next states."""
        half = len(self.weight) // 2
        edges = []
        for relation, sender, receiver in batch.by_relation:
            for number, one, other in ((relation, sender, receiver), (half + relation, receiver, sender)):
                counts = torch.bincount(other, minlength=len(x))
                edges.append((number, one, other, (1 / counts[other].float())[:, None]))
        return self.root(x) + _Messages.apply(x, self.weight, edges)  # type: ignore[no-any-return, no-untyped-call]


class Rgcn(nn.Module):
    """A Linear of the features (of ``identity``: a learned vector for each node), layers, DistMult.

    Parameters
    ----------
    options : RgcnOptions
    shape : Shape
        Input width, and relations as classes.
    """

    def __init__(self, options: RgcnOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        self.pre = nn.Linear(shape.width, options.hidden)
        self.conv = nn.ModuleList(
            RgcnConv(options.hidden, options.blocks, shape.classes) for _ in range(options.layers)
        )
        self.readout = nn.Linear(options.hidden, shape.classes, bias=False)

    def states(self, batch: Batch, streams: DropoutStreams | None) -> Tensor:
        """Return every node's state, [N, h]."""
        x = batch.linear(self.pre)
        for layer, convolution in enumerate(self.conv):
            x = convolution(relu(x) if layer else x, batch)
            if streams is not None:
                x = streams.apply(x, layer, self.options.dropout)
        return x

    def scores(self, batch: Batch, streams: DropoutStreams | None, relations: Tensor) -> Tensor:
        """Return the score of one relation of each pair, [n, 1]; `relations` int64 [n]."""
        products = self.embed(batch, streams) * self.readout.weight.index_select(0, relations)
        return products.sum(dim=1, keepdim=True)

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return the product of both nodes' states, element by element, of each pair, [n, h]."""
        return batch.read(self.states(batch, streams), "sum")

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return a score of each relation, [n, R]; `streams` is None in evaluation."""
        return self.readout(self.embed(batch, streams, kernels))  # type: ignore[no-any-return]
