"""MVGRL's pair of encoders (Hassani and Khasahmadi, ICML 2020), as the official code for graphs has it.

Two GCNs, one for the normalised adjacency and one for the diffused view: per layer Linear without bias,
product with the view's matrix, bias, PReLU. A graph's vector is the sums of all layers side by side, a
node's the last layer's output; one MLP for nodes and one for graphs serve both views.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.models.encoder import Encoding, XavierLinear
from fedmpi.models.options import MvgrlEncoderOptions, Shape


class GcnLayer(nn.Module):
    """PReLU(M (x W) + b) with M the matrix of a view."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = XavierLinear(width, hidden, bias=False)
        self.shift = Shift(hidden)
        self.activation = nn.PReLU()

    def forward(self, view: WeightedBatch, x: Tensor) -> Tensor:
        """Map the nodes' vectors [N, w] to [N, h]."""
        return self.activation(self.shift(view.spread(self.linear(x))))  # type: ignore[no-any-return]


class Shift(nn.Module):
    """Adds a vector that starts at zero."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(hidden))

    def reset_parameters(self) -> None:
        """Set the vector to zero."""
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return x + b."""
        return x + self.bias


class Head(nn.Module):
    """Three times Linear and PReLU, and a Linear beside them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        widths = [width, hidden, hidden]
        parts = [part for each in widths for part in (nn.Linear(each, hidden), nn.PReLU())]
        self.main = nn.Sequential(*parts)
        self.shortcut = nn.Linear(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Map [n, w] to [n, h]."""
        return self.main(x) + self.shortcut(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class PairEncoding:
    """What the two encoders say of the nodes and graphs of a batch."""

    adjacency: Encoding
    diffused: Encoding


class MvgrlEncoder(nn.Module):
    """The two GCNs and the two MLPs.

    Parameters
    ----------
    options : MvgrlEncoderOptions
    shape : Shape
        Its width are the node features.

    Attributes
    ----------
    registered : bool
        Whether the convolutions are parameters.

    Notes
    -----
    Without ``register_layers`` the convolutions are named ``frozen.*`` and are no parameters: they stay
    as they were drawn, the same for everybody, and never leave a client.
    """

    def __init__(self, options: MvgrlEncoderOptions, shape: Shape) -> None:
        super().__init__()
        hidden, layers = options.hidden, options.layers
        widths = [shape.width] + [hidden] * (layers - 1)
        layers_of_one = (nn.ModuleList(GcnLayer(each, hidden) for each in widths) for _ in range(2))
        convolutions = nn.ModuleList(layers_of_one)
        self.registered = options.register_layers
        if not options.register_layers:
            _freeze(convolutions)
        self.add_module("conv" if options.register_layers else "frozen", convolutions)
        self._convolutions = [convolutions]  # in a list, so that it is not registered twice
        self.node_head = Head(hidden, hidden)
        self.graph_head = Head(layers * hidden, hidden)

    def convolve(self, adjacency: WeightedBatch, diffused: WeightedBatch) -> PairEncoding:
        """Return what the heads map: the nodes' last layer [N, h], the graphs' sums of all [B, layers h]."""
        first, second = self._convolutions[0]
        return PairEncoding(_convolve(first, adjacency), _convolve(second, diffused))

    def heads(self, pair: PairEncoding) -> PairEncoding:
        """Return the encoding of each view from what `convolve` says of it."""
        return PairEncoding(*(self._heads(each) for each in (pair.adjacency, pair.diffused)))

    def _heads(self, of: Encoding) -> Encoding:
        return Encoding(self.node_head(of.nodes), self.graph_head(of.graphs))

    def graph_vectors(self, pair: PairEncoding) -> Tensor:
        """Return the sums of both views' vectors of graphs, [B, h]."""
        return self.graph_head(pair.adjacency.graphs) + self.graph_head(pair.diffused.graphs)  # type: ignore[no-any-return]


def _convolve(layers: nn.Module, view: WeightedBatch) -> Encoding:
    x, sums = view.x, []
    for layer in layers.children():
        x = layer(view, x)
        sums.append(view.sum_graphs(x))
    return Encoding(x, torch.cat(sums, dim=1))


def _freeze(module: nn.Module) -> None:
    """Turn a module's parameters into buffers of the same names."""
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, parameter.data)
