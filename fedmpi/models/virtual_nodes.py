"""FedVN's network (Fu et al., AAAI 2025): a GIN whose graphs have virtual nodes, joined by a second GIN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.gin import GinMlp, convolve
from fedmpi.models.norms import BatchNorm
from fedmpi.models.options import FedVnOptions, Shape


class Scoring(nn.Module):
    """The edge generator: scores in [0, 1] of the edges between nodes and virtual nodes, by a GIN."""

    def __init__(self, options: FedVnOptions, width: int) -> None:
        super().__init__()
        hidden, layers = options.hidden, options.layers
        self.pre = nn.Linear(width, hidden)
        self.conv = nn.ModuleList(GinMlp(hidden) for _ in range(layers))
        self.norm = nn.ModuleList(BatchNorm(hidden) for _ in range(layers))
        self.post = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, options.nodes)

    def forward(self, batch: Batch, dropout: Dropout) -> Tensor:
        """Return the scores, [N, M]."""
        x = batch.linear(self.pre)
        for conv, norm in zip(self.conv, self.norm, strict=True):
            x = dropout(relu(norm(convolve(conv, batch, x, "csr"), batch, dropout.training)))
        return self.readout(dropout(relu(self.post(x)))).sigmoid()  # type: ignore[no-any-return]


class VirtualMlp(nn.Module):
    """Next states of a graph's virtual nodes, [B, M, h]; each of these and each channel is normalised."""

    def __init__(self, nodes: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)
        self.first_norm, self.second_norm = BatchNorm(nodes * 2 * hidden), BatchNorm(nodes * hidden)

    def forward(self, batch: Batch, states: Tensor, training: bool) -> Tensor:
        """Map sums over the nodes."""
        for linear, norm in ((self.first, self.first_norm), (self.second, self.second_norm)):
            states = linear(states)
            states = relu(norm(states.flatten(1), batch, training)).view_as(states)
        return states


class Virtual(nn.Module):
    """Virtual nodes: their states before the first layer, 0 at the start, and an MLP between layers."""

    def __init__(self, options: FedVnOptions) -> None:
        super().__init__()
        self.states = nn.Parameter(torch.empty(options.nodes, options.hidden))
        self.mlp = nn.ModuleList(VirtualMlp(*self.states.shape) for _ in range(options.layers - 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the states to 0."""
        nn.init.zeros_(self.states)


class Dropout:
    """Dropout of one pass, whose calls are its layers; `streams` is None in evaluation."""

    def __init__(self, streams: DropoutStreams | None, share: float) -> None:
        self.streams, self._share, self._layer = streams, share, -1

    @property
    def training(self) -> bool:
        """Whether the pass trains."""
        return self.streams is not None

    def __call__(self, x: Tensor) -> Tensor:
        """Return the rows of the next layer with dropout."""
        self._layer += 1
        return x if self.streams is None else self.streams.apply(x, self._layer, self._share)


class FedVnNetwork(nn.Module):
    r"""A GIN with virtual nodes: with the scores :math:`s`, layer l has

    .. math:: h_i \leftarrow \mathrm{GIN}_l(h_i + \sum_m s_{im} v_m), \quad
              v_m \leftarrow \mathrm{MLP}_l(v_m + \sum_i s_{im} h_i)

    for the nodes i of a graph and its virtual nodes m, both sums of states before the layer.
    """  # noqa: D400 - the equation ends the sentence

    def __init__(self, options: FedVnOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        hidden = options.hidden
        self.pre = nn.Linear(shape.width, hidden)
        self.conv = nn.ModuleList(GinMlp(hidden) for _ in range(options.layers))
        self.norm = nn.ModuleList(BatchNorm(hidden) for _ in range(options.layers))
        self.virtual = Virtual(options)
        self.post = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, shape.classes)
        self.score = Scoring(options, shape.width)

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return logits [B, C]; `streams` is None in evaluation."""
        pooled = self.embed(batch, streams, kernels)[:, : self.options.hidden]
        hidden = relu(self.post(pooled))
        if streams is not None:
            hidden = streams.apply(hidden, 3 * len(self.conv), self.options.dropout)
        return self.readout(hidden)  # type: ignore[no-any-return]

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return the mean state of each graph's nodes, and beside it the sum of their scores, [B, h + M]."""
        dropout = Dropout(streams, self.options.dropout)
        score = self.score(batch, dropout)
        x = batch.linear(self.pre)
        states = self.virtual.states.expand(batch.num_graphs, -1, -1)
        for layer, (conv, norm) in enumerate(zip(self.conv, self.norm, strict=True)):
            before = x
            of_graph = batch.spread_graphs(states.flatten(1)).view(-1, *states.shape[1:])
            x = x + torch.bmm(score[:, None], of_graph)[:, 0]
            x = dropout(relu(norm(convolve(conv, batch, x, kernels), batch, dropout.training)))
            if layer < len(self.virtual.mlp):
                sums = batch.sum_graphs((score[:, :, None] * before[:, None]).flatten(1))
                mlp = self.virtual.mlp[layer]
                states = dropout(mlp(batch, states + sums.view_as(states), dropout.training))
        return torch.cat([batch.mean_graphs(x), batch.sum_graphs(score)], dim=1)
