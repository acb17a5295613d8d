"""FedAvg after GCFL's released protocol in plain PyTorch Geometric: the peer that fedmpi is timed against.

What a PyTorch Geometric user writes: a list of `Data` objects per split, a `DataLoader` for each, `GINConv`
and `torch.optim.Adam`. Datasets and partition are fedmpi's, so both train on the same graphs; nothing else is
shared. Start it by itself, or let ``fedmpi bench peers`` alternate it with fedmpi::

    python bench/peers/reference.py PROTEINS --clients 10 --rounds 20
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import one_hot

if TYPE_CHECKING:  # the network serves in environments without fedmpi, too
    from fedmpi.datasets.raw import RawGraphs
    from fedmpi.partition.partition import Partition

Splits = tuple[list[Data], list[Data], list[Data]]
"""A client's graphs: to train on, for validation, for the test."""

HIDDEN = 64
LAYERS = 3
DROPOUT = 0.5
BATCH_SIZE = 128
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 5e-4


class GIN(Module):
    """Linear, three GIN convolutions with ReLU and dropout, sum pooling, and a head of two Linears."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.pre = Linear(width, HIDDEN)
        self.convs = ModuleList(
            GINConv(Sequential(Linear(HIDDEN, HIDDEN), ReLU(), Linear(HIDDEN, HIDDEN))) for _ in range(LAYERS)
        )
        self.post = Linear(HIDDEN, HIDDEN)
        self.readout = Linear(HIDDEN, classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Return logits [B, C] of the B graphs of a batch."""
        x = self.pre(x)
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            x = F.dropout(x, DROPOUT, self.training)
        x = self.post(global_add_pool(x, batch)).relu()
        x = F.dropout(x, DROPOUT, self.training)
        return self.readout(x)


def loss_of(scores: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of classes [B], or of several binary labels [B, C], some NaN where unknown."""
    if labels.dim() == 1:
        return F.cross_entropy(scores, labels, reduction=reduction)
    known = ~labels.isnan()
    return F.binary_cross_entropy_with_logits(scores[known], labels[known], reduction=reduction)


def hits_of(scores: Tensor, labels: Tensor) -> float:
    """Return how many predictions are right; of several labels, the share of each graph's."""
    if labels.dim() == 1:
        return int((scores.argmax(dim=1) == labels).sum())
    return int(((scores > 0) == (labels > 0.5)).sum()) / labels.shape[1]


class Client:
    """A model on a device with its loaders, and an Adam that lives as long as the client."""

    def __init__(
        self, train: list[Data], val: list[Data], test: list[Data], classes: int, device: torch.device | str
    ) -> None:
        self.device = device
        self.model = GIN(train[0].num_features, classes).to(device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        self.num_train = len(train)
        self.train_loader, self.val_loader, self.test_loader = (
            DataLoader(split, batch_size=BATCH_SIZE, shuffle=True) for split in (train, val, test)
        )

    def train_epoch(self) -> tuple[float, float]:
        """Train for one epoch; return the running means of loss and accuracy."""
        self.model.train()
        loss_sum, correct = 0.0, 0.0
        for data in self.train_loader:
            data = data.to(self.device)
            self.optimizer.zero_grad()
            scores = self.model(data.x, data.edge_index, data.batch)
            loss = loss_of(scores, data.y)
            loss.backward()
            self.optimizer.step()
            loss_sum += loss.item() * data.num_graphs
            correct += hits_of(scores, data.y)
        return loss_sum / self.num_train, correct / self.num_train

    @torch.no_grad()
    def evaluate(self, loader: DataLoader) -> tuple[float, float]:
        """Return mean loss and accuracy over a loader's graphs."""
        self.model.eval()
        loss_sum, correct = 0.0, 0.0
        for data in loader:
            data = data.to(self.device)
            scores = self.model(data.x, data.edge_index, data.batch)
            loss_sum += loss_of(scores, data.y, reduction="sum").item()
            correct += hits_of(scores, data.y)
        return loss_sum / len(loader.dataset), correct / len(loader.dataset)


class FedAvg:
    """The convolutions are averaged by training graphs; the layers before and after them stay local."""

    def __init__(self, clients: Sequence[Client], server: GIN) -> None:
        self.clients = clients
        self.server = server
        self.download()

    def download(self) -> None:
        """Give the server's convolutions to every client."""
        shared = self.server.convs.state_dict()
        for client in self.clients:
            client.model.convs.load_state_dict(shared)

    @torch.no_grad()
    def aggregate(self) -> None:
        """Average the clients' convolutions into the server's."""
        total = sum(client.num_train for client in self.clients)
        models = [client.model.convs.parameters() for client in self.clients]
        for mean, *parameters in zip(self.server.convs.parameters(), *models, strict=True):
            mean.zero_()
            for client, parameter in zip(self.clients, parameters, strict=True):
                mean.add_(parameter, alpha=client.num_train / total)

    def round(self) -> list[tuple[float, ...]]:
        """Run one round; return each client's losses and accuracies: train, validation, test.

        As in the released code, validation and test graphs are evaluated after the local epoch.
        """
        reports = []
        for client in self.clients:
            train = client.train_epoch()
            val, test = client.evaluate(client.val_loader), client.evaluate(client.test_loader)
            reports.append((*train, *val, *test))
        self.aggregate()
        self.download()
        return reports

    def test_accuracy(self) -> float:
        """Return the clients' mean test accuracy after the download: what is reported at the end."""
        scores = [client.evaluate(client.test_loader)[1] for client in self.clients]
        return statistics.fmean(scores)


def node_features(raw: RawGraphs) -> Tensor:
    """Return the features of a dataset's nodes, float32 [N, d].

    Attributes of atoms where it has names for them, else one-hot node labels, else one-hot degrees.
    """
    from fedmpi.datasets.features import feature_width
    from fedmpi.graphs.packed import dense

    if raw.attribute_names and raw.node_attributes is not None:
        return torch.from_numpy(np.array(dense(raw.node_attributes)))
    if raw.node_labels is None:
        degrees = np.bincount(raw.topology.columns, minlength=raw.topology.num_nodes)
        return one_hot(torch.from_numpy(degrees), feature_width(raw, "degree"))
    labels = torch.from_numpy(np.array(raw.node_labels))
    columns = [one_hot(labels[:, place], width) for place, width in enumerate(raw.label_widths)]
    return torch.cat(columns, dim=1)


def data_list(raw: RawGraphs) -> list[Data]:
    """Return the graphs of a dataset as `TUDataset` has them: edges by sending, then by receiving node."""
    x, topology = node_features(raw), raw.topology
    labels = torch.from_numpy(np.array(raw.labels))
    graphs = []
    for graph in range(raw.num_graphs):
        first, last = int(topology.graph_ptr[graph]), int(topology.graph_ptr[graph + 1])
        degrees = np.diff(topology.row_ptr[first : last + 1])
        receivers = np.repeat(np.arange(last - first), degrees)
        senders = np.array(topology.columns[topology.row_ptr[first] : topology.row_ptr[last]]) - first
        order = np.lexsort((receivers, senders))
        edge_index = torch.from_numpy(np.stack([senders[order], receivers[order]]))
        graphs.append(Data(x=x[first:last], edge_index=edge_index, y=labels[graph : graph + 1]))
    return graphs


def splits_of(raws: Sequence[RawGraphs], partition: Partition) -> list[Splits]:
    """Return the graphs of each client of a partition."""
    graphs = [data_list(raw) for raw in raws]
    return [
        tuple([graphs[split.dataset][int(n)] for n in part] for part in (split.train, split.val, split.test))
        for split in partition.clients
    ]


def save_splits(path: Path, clients: Sequence[Splits], classes: int) -> None:
    """Write the clients' graphs and the number of classes to a file of NumPy arrays."""
    graphs = [graph for client in clients for part in client for graph in part]
    np.savez(
        path,
        x=torch.cat([graph.x for graph in graphs]),
        edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1),
        y=torch.cat([graph.y for graph in graphs]),
        nodes=[graph.num_nodes for graph in graphs],
        edges=[graph.num_edges for graph in graphs],
        sizes=[[len(part) for part in client] for client in clients],
        classes=classes,
    )


def load_splits(path: Path) -> tuple[list[Splits], int]:
    """Return what `save_splits` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        nodes, edges = stored["nodes"].tolist(), stored["edges"].tolist()
        x, y = torch.from_numpy(stored["x"]).split(nodes), torch.from_numpy(stored["y"]).split(1)
        edge_index = torch.from_numpy(stored["edge_index"]).split(edges, dim=1)
        sizes, classes = stored["sizes"].tolist(), int(stored["classes"])
    graphs = (Data(x=a, edge_index=b, y=c) for a, b, c in zip(x, edge_index, y, strict=True))
    return [tuple(list(islice(graphs, size)) for size in client) for client in sizes], classes


def federation(
    raws: Sequence[RawGraphs], partition: Partition, seed: int, device: torch.device | str = "cpu"
) -> FedAvg:
    """Return FedAvg over the clients of a partition, models and order of batches drawn from `seed`."""
    torch.manual_seed(seed)
    held = list(zip(partition.clients, splits_of(raws, partition), strict=True))
    clients = [Client(*graphs, raws[split.dataset].num_classes, device) for split, graphs in held]
    return FedAvg(clients, GIN(held[0][1][0][0].num_features, raws[0].num_classes).to(device))


def main() -> None:
    """Run rounds on a dataset and print their times and the accuracy after the last download."""
    from fedmpi.datasets.loading import load_all
    from fedmpi.datasets.options import DatasetOptions
    from fedmpi.datasets.source import DataSource
    from fedmpi.partition.options import Chunks, PerDataset
    from fedmpi.partition.partition import make

    parser = argparse.ArgumentParser(description="FedAvg after GCFL's protocol in plain PyTorch Geometric.")
    parser.add_argument("dataset", help="a TU dataset, or a group such as gcfl/molecules")
    parser.add_argument("--clients", type=int, default=10, help="of one dataset (a group: one per dataset)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    source = DataSource.from_environment()
    source.prepare(options.dataset)
    raws = load_all(DatasetOptions(name=options.dataset), source)
    partition = make(Chunks(clients=options.clients) if len(raws) == 1 else PerDataset(), raws)
    peer = federation(raws, partition, options.seed)
    for number in range(options.rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        peer.round()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"round {number + 1}: {1e3 * wall:.1f} ms wall, {1e3 * cpu:.1f} ms CPU")
    print(f"test accuracy {peer.test_accuracy():.4f}")


if __name__ == "__main__":
    main()
