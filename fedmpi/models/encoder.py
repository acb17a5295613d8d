"""The encoder of InfoGraph and FCLG: GIN whose layers' outputs stand side by side.

Sun, Hoffman, Verma and Tang, "InfoGraph", ICLR 2020, and Li, Agrawal, Ramnath and Jin, "Federated
contrastive learning of graph-level representations", 2024, section III. Per layer an MLP of two
Linears, ReLU, then BatchNorm, in this order; weights drawn by Xavier's rule, biases zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.options import GinEncoderOptions, Shape

_MOMENTUM = 0.1
"""Weight of a batch's moments in the running ones: torch's default."""


@dataclass(frozen=True)
class Encoding:
    """Vectors of nodes and of the B graphs that hold them.

    Attributes
    ----------
    nodes : float32 [C, d]
        One for each node; or for each class of nodes alike, see `counts`.
    graphs : float32 [B, d]
    counts : float32 [C] or None
        Nodes of each class; None where every node has a vector of its own.
    """

    nodes: Tensor
    graphs: Tensor
    counts: Tensor | None = None


class XavierLinear(nn.Linear):
    """A Linear that starts with Xavier-uniform weights and zero biases."""

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class EncoderLayer(nn.Module):
    r"""One convolution, h' = BN(relu(W2 relu(W1 (A + I) h + b1) + b2)); (S + I) on a weighted view."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = XavierLinear(width, hidden)
        self.second = XavierLinear(hidden, hidden)
        self.norm = nn.BatchNorm1d(hidden)

    def forward(self, batch: Batch, x: Tensor, training: bool) -> Tensor:
        """Map the nodes' vectors [N, w] to [N, h]."""
        hidden = relu(self.second(relu(self.first(batch.sum_neighbourhood(x)))))
        norm = self.norm
        running = norm.running_mean, norm.running_var
        return batch_norm(hidden, *running, norm.weight, norm.bias, training, _MOMENTUM, norm.eps)


class GinEncoder(nn.Module):
    """All layers' outputs side by side for nodes, and their sums for graphs.

    Parameters
    ----------
    options : GinEncoderOptions
        Hidden width h, layers L; vectors have L h elements.
    shape : Shape
        Its width are the node features.
    """

    def __init__(self, options: GinEncoderOptions, shape: Shape) -> None:
        super().__init__()
        widths = [shape.width] + [options.hidden] * (options.layers - 1)
        self.conv = nn.ModuleList(EncoderLayer(each, options.hidden) for each in widths)

    def encode(self, batch: Batch, *, training: bool) -> Encoding:
        """Return the vectors of nodes and graphs; with `training` BatchNorm takes the batch's own moments."""
        x, outputs = batch.x, []
        for layer in self.conv:
            x = layer(batch, x, training)
            outputs.append(x)
        nodes = torch.cat(outputs, dim=1)
        return Encoding(nodes, batch.sum_graphs(nodes))
