"""FedAvg on nodes and on ratings in plain PyTorch Geometric: the peer of ``peers/networks.toml``.

What a PyTorch Geometric user writes: ego-networks as a list of `Data` objects with a `DataLoader`, a client's
ratings as one `Data` object trained in full batches, `GCNConv` and `torch.optim.Adam`. Datasets and partition
are fedmpi's, so both train on the same graphs; nothing else is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv

from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import dense, take
from fedmpi.partition.partition import ClientSplit, Partition


class GCN(Module):
    """Linear, graph convolutions with ReLU and dropout, and a Linear for nodes.

    Pairs have the dot product of their nodes' states, which are those of a last convolution without ReLU.
    """

    def __init__(self, width: int, options: Any, outputs: int) -> None:
        super().__init__()
        hidden, layers, self.dropout = options.hidden, options.layers, options.dropout
        self.pre = Linear(width, hidden)
        self.convs = ModuleList(GCNConv(hidden, hidden) for _ in range(layers))
        self.readout = Linear(hidden, outputs) if outputs else None

    def forward(self, x: Tensor, edge_index: Tensor, pairs: Tensor | None = None) -> Tensor:
        """Return logits [N, C] of all nodes, or a score of each pair [n] of `pairs` [2, n]."""
        x = self.pre(x)
        for conv in self.convs if self.readout is not None else self.convs[:-1]:
            x = conv(x, edge_index).relu()
            x = F.dropout(x, self.dropout, self.training)
        if self.readout is not None:
            return self.readout(x)
        x = self.convs[-1](x, edge_index)
        return (x[pairs[0]] * x[pairs[1]]).sum(dim=1)


class Client:
    """A model and its loaders; Adam starts anew in every round, as in the released code."""

    def __init__(
        self, model: GCN, train: Iterable[Data], held_out: Sequence[Iterable[Data]], lr: float
    ) -> None:
        self.model, self.lr = model, lr
        self.train_loader, self.held_out = train, held_out
        self.weight = 1.0

    def loss(self, data: Data) -> Tensor:
        """Return the mean cross-entropy of nodes, or the mean squared error of ratings."""
        if self.model.readout is not None:
            return F.cross_entropy(self.model(data.x, data.edge_index), data.y)
        return F.mse_loss(self.model(data.x, data.edge_index, data.edge_label_index), data.edge_label)

    def train_epoch(self) -> float:
        """Train for one epoch; return the mean loss over batches."""
        self.model.train()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        losses = []
        for data in self.train_loader:
            optimizer.zero_grad()
            loss = self.loss(data)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def evaluate(self) -> list[float]:
        """Return the mean loss of validation and of test."""
        self.model.eval()
        return [float(np.mean([self.loss(data).item() for data in loader])) for loader in self.held_out]


class FedAvg:
    """All parameters are averaged."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients
        self.server = clients[0].model.state_dict()
        self.server = {name: value.clone() for name, value in self.server.items()}
        self.download()

    def download(self) -> None:
        """Give the server's model to every client."""
        for client in self.clients:
            client.model.load_state_dict(self.server)

    @torch.no_grad()
    def round(self) -> list[tuple[float, ...]]:
        """Run one round; return each client's losses: train, validation, test."""
        reports = []
        for client in self.clients:
            with torch.enable_grad():
                train = client.train_epoch()
            reports.append((train, *client.evaluate()))
        total = sum(client.weight for client in self.clients)
        states = [client.model.state_dict() for client in self.clients]
        for name, mean in self.server.items():
            mean.zero_()
            for client, state in zip(self.clients, states, strict=True):
                mean.add_(state[name], alpha=client.weight / total)
        self.download()
        return reports


def federation(raws: Sequence[RawGraphs], partition: Partition, case: Any) -> FedAvg:
    """Return FedAvg over the clients of a partition of nodes in ego-networks, or of ratings."""
    torch.manual_seed(case.seed)
    (raw,) = raws
    make: Callable[..., Client] = _of_egos if raw.examples == "node" else _of_ratings
    return FedAvg([make(raw, split, case) for split in partition.clients])


def _of_egos(raw: RawGraphs, split: ClientSplit, case: Any) -> Client:
    words, topology = raw.node_attributes, raw.topology
    assert words is not None

    def data(graph: int) -> Data:
        first, last = int(topology.graph_ptr[graph]), int(topology.graph_ptr[graph + 1])
        receivers = np.repeat(np.arange(last - first), np.diff(topology.row_ptr[first : last + 1]))
        senders = np.array(topology.columns[topology.row_ptr[first] : topology.row_ptr[last]]) - first
        x = dense(take(words, raw.rows_of(np.arange(first, last))))
        y = np.asarray(raw.labels)[first:last]  # as published: every node is an example
        return Data(
            x=torch.from_numpy(np.ascontiguousarray(x)),
            edge_index=torch.from_numpy(np.stack([senders, receivers]).astype(np.int64)),
            y=torch.from_numpy(np.ascontiguousarray(y)),
        )

    def loader(part: np.ndarray) -> DataLoader:
        return DataLoader([data(int(graph)) for graph in part], batch_size=case.batch_size, shuffle=True)

    model = GCN(words.shape[1], case.model, raw.num_classes)
    client = Client(model, loader(split.train), [loader(split.val), loader(split.test)], case.optimizer.lr)
    client.weight = float(len(split.train))
    return client


def _of_ratings(raw: RawGraphs, split: ClientSplit, case: Any) -> Client:
    nodes = split.nodes

    def pairs(part: np.ndarray) -> Tensor:
        return torch.from_numpy(np.searchsorted(nodes, raw.rows_of(np.asarray(raw.places)[part])).T.copy())

    x, edge_index = torch.ones(len(nodes), 1), pairs(split.train)

    def whole(part: np.ndarray) -> list[Data]:
        ratings = torch.from_numpy(np.asarray(raw.labels)[part].ravel()).float()
        return [Data(x=x, edge_index=edge_index, edge_label_index=pairs(part), edge_label=ratings)]

    model = GCN(1, case.model, 0)
    return Client(model, whole(split.train), [whole(split.val), whole(split.test)], case.optimizer.lr)
