"""FedStar's network (Tan et al., AAAI 2023): a GIN that reads features beside a GCN that reads structure."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.gin import GinMlp, convolve, pool
from fedmpi.models.options import FedStarOptions, Shape


class GcnLayer(nn.Module):
    r"""Kipf and Welling's convolution :math:`D^{-1/2} (A + I) D^{-1/2} s W + b`."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden, hidden))
        self.bias = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight as torch-geometric's GCNConv does (Glorot), the bias to 0."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, batch: Batch, s: Tensor, kernels: str) -> Tensor:
        """Return the convolution of the rows [N, h]."""
        if kernels == "reference":
            from torch_geometric.nn import GCNConv

            layer = GCNConv(*self.weight.shape).to(s.device)
            parameters: dict[str, Tensor] = {"lin.weight": self.weight, "bias": self.bias}
            return torch.func.functional_call(layer, parameters, (s, batch.edge_index))  # type: ignore[no-any-return]
        return batch.normalised_sum(s @ self.weight.T, by_twins=True) + self.bias


class Structure(nn.Module):
    """The structure channel, all that FedStar shares: an embedding and one GCN per layer."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Linear(width, hidden)
        self.conv = nn.ModuleList(GcnLayer(hidden) for _ in range(layers))


class FedStarNetwork(nn.Module):
    """Two channels of `layers` convolutions; features read structure in every layer, never the reverse.

    Attributes
    ----------
    by_twins : bool
        Sums over neighbours are taken once for nodes that see the same.

    Notes
    -----
    64,898 parameters on MUTAG (d = 7, C = 2), of which the structure channel holds 14,592; GCFL's GIN
    has 29,762 there.
    """

    by_twins = True

    def __init__(self, options: FedStarOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        hidden = options.hidden
        self.pre = nn.Linear(shape.width, hidden)
        self.structure = Structure(options.encoding, hidden, options.layers)
        self.conv = nn.ModuleList(GinMlp(hidden, 2 * hidden) for _ in range(options.layers))
        self.merge = nn.Linear(2 * hidden, hidden)
        self.post = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, shape.classes)

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return logits [B, C]; `streams` is None in evaluation."""
        hidden = relu(self.post(self.embed(batch, streams, kernels)))
        if streams is not None:
            hidden = streams.apply(hidden, len(self.conv), self.options.dropout)
        return self.readout(hidden)  # type: ignore[no-any-return]

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return the sums over the graphs' nodes of both channels merged, [B, h]."""
        assert batch.structure is not None
        x, s = self.pre(batch.x), self.structure.embed(batch.structure)
        for layer, (mlp, gcn) in enumerate(zip(self.conv, self.structure.conv, strict=True)):
            both = torch.cat([x, s], dim=1)
            if kernels == "reference":
                x = relu(convolve(mlp, batch, both, kernels))
            else:
                x = relu(mlp(batch.sum_by_twins(both)))
            if streams is not None:
                x = streams.apply(x, layer, self.options.dropout)
            s = torch.tanh(gcn(batch, s, kernels))
        return pool(batch, self.merge(torch.cat([x, s], dim=1)), kernels)
