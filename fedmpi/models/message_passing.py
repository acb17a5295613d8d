"""Graph networks of torch-geometric's layers: GCN, GAT, GraphSAGE, SGC and MPNN for any graph-level task.

The layers hold the parameters. ``kernels = "reference"`` runs them as they are, along edge lists; ``"csr"``
takes the same sums by rows of the graphs' CSR arrays, but for GAT, which gains nothing from that. Compiled
kernels are in `fedmpi.kernels.graph_network`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SGConv
from torch_geometric.utils import scatter

from fedmpi.graphs.batch import Batch
from fedmpi.models import options as models
from fedmpi.models.dropout import DropoutStreams


class MpnnConv(nn.Module):
    r"""One step of FedGraphNN's Eq. 1, with a Linear and ReLU for message and update.

    ``m_i = sum over neighbours j of relu(M [h_i, h_j, e_ij])``, ``h_i' = U [h_i, m_i]``; [N, h] to [N, h].
    """

    def __init__(self, hidden: int, edges: int) -> None:
        super().__init__()
        self.messages = nn.Linear(2 * hidden + edges, hidden)
        self.updates = nn.Linear(2 * hidden, hidden)

    def forward(self, x: Tensor, edge_index: Tensor, attributes: Tensor | None) -> Tensor:
        """Return the nodes' next states."""
        sender, receiver = edge_index
        ends = [x[receiver], x[sender]] if attributes is None else [x[receiver], x[sender], attributes]
        messages = relu(self.messages(torch.cat(ends, dim=1)))
        summed = scatter(messages, receiver, dim=0, dim_size=len(x), reduce="sum")
        return self.updates(torch.cat([x, summed], dim=1))  # type: ignore[no-any-return]


class GraphNetwork(nn.Module):
    """Linear, convolutions with ReLU and dropout, pooling of the last layer, a head of one or two Linears.

    Without a head (dot products of pairs) the last convolution has neither ReLU nor dropout, as FedGraphNN's
    released link predictors.

    The convolutions are named ``conv.*`` and all of one width, so that clients with other features
    and classes can share them.

    Parameters
    ----------
    options : MessagePassingOptions
    shape : Shape
        Input width, outputs, and width of the edges' attributes, which MPNN alone reads.
    """

    def __init__(self, options: models.MessagePassingOptions, shape: models.Shape) -> None:
        super().__init__()
        self.options = options
        self.pre = nn.Linear(shape.width, options.hidden)
        self.conv = nn.ModuleList(self._convolution(shape.edges) for _ in range(options.modules))
        self.post = nn.Linear(options.hidden, options.hidden) if options.head_layers == 2 else None
        self.readout = nn.Linear(options.hidden, shape.classes) if options.head_layers else None
        self._activates_last = self.readout is not None

    def _convolution(self, edges: int) -> Any:
        return _layer(self.options, edges)

    def _convolved(self, convolution: Any, x: Tensor, batch: Batch, kernels: str) -> Tensor:
        along = _along_edges if kernels == "reference" else _by_rows
        return along(convolution, x, batch)

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what the head sees of each example, [n, h]."""
        return batch.read(self._states(batch, streams, kernels), self.options.pooling)

    def _states(self, batch: Batch, streams: DropoutStreams | None, kernels: str) -> Tensor:
        """Return every node's state, [N, h]."""
        x = batch.linear(self.pre)
        for layer, convolution in enumerate(self.conv):
            x = self._convolved(convolution, x, batch, kernels)
            if layer == len(self.conv) - 1 and not self._activates_last:
                return x
            x = relu(x)
            if streams is not None:
                x = streams.apply(x, layer, self.options.dropout)
        return x

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return outputs [B, C]; `streams` is None in evaluation."""
        if self.readout is None and kernels == "csr":
            return batch.dots(self._states(batch, streams, kernels))
        hidden = self.embed(batch, streams, kernels)
        if self.post is not None:
            hidden = relu(self.post(hidden))
            if streams is not None:
                hidden = streams.apply(hidden, len(self.conv), self.options.dropout)
        if self.readout is None:
            return hidden.sum(dim=1, keepdim=True)
        return self.readout(hidden)  # type: ignore[no-any-return]


def _along_edges(convolution: Any, x: Tensor, batch: Batch) -> Tensor:
    """Return a layer of torch-geometric, [N, h]."""
    edges = (batch.edges,) if isinstance(convolution, MpnnConv) else ()
    return convolution(x, batch.edge_index, *edges)  # type: ignore[no-any-return]


def _by_rows(convolution: Any, x: Tensor, batch: Batch) -> Tensor:
    """Return the same, [N, h], from sums by rows."""
    match convolution:
        case GCNConv():
            found = batch.normalised_sum(convolution.lin(x)) + convolution.bias
        case SGConv():
            for _ in range(convolution.K):
                x = batch.normalised_sum(x)
            found = convolution.lin(x)
        case SAGEConv():
            found = convolution.lin_l(batch.mean_neighbours(x)) + convolution.lin_r(x)
        case MpnnConv():
            summed = batch.reduce_edges(relu(_messages(convolution.messages, x, batch)))
            found = convolution.updates(torch.cat([x, summed], dim=1))
        case _:
            found = _along_edges(convolution, x, batch)
    return found  # type: ignore[no-any-return]


def _messages(linear: nn.Linear, x: Tensor, batch: Batch) -> Tensor:
    """Return ``M [h_i, h_j, e_ij]`` of every edge, [E, h], from one product per node for h_i and for h_j."""
    hidden, (sender, receiver) = x.shape[1], batch.edge_index
    to, of = x @ linear.weight[:, :hidden].T, x @ linear.weight[:, hidden : 2 * hidden].T
    messages = to[receiver] + of[sender] + linear.bias
    return messages if batch.edges is None else messages + batch.edges @ linear.weight[:, 2 * hidden :].T


def _layer(options: models.MessagePassingOptions, edges: int) -> Any:
    """Return one layer; dropout is the network's, since torch-geometric's draws from the global generator."""
    hidden = options.hidden
    match options:
        case models.GcnOptions():
            return GCNConv(hidden, hidden)
        case models.GatOptions():
            return GATConv(hidden, hidden // options.heads, options.heads, negative_slope=options.slope)
        case models.SageOptions():
            return SAGEConv(hidden, hidden)
        case models.SgcOptions():
            return SGConv(hidden, hidden, K=options.layers)
        case models.MpnnOptions():
            return MpnnConv(hidden, edges)
    raise AssertionError(options.name)
