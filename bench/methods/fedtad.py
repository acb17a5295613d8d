"""FedTAD's server by fedmpi, and by its equations in plain torch and PyG, of the same clients' models.

``python bench/methods/fedtad.py [--rounds 10]``. A run of `fedtad` trains on Cora as usual. In every round
the plain server gets the clients' models, their mean, how much each counts, and the numbers that are drawn;
at the start it gets the generator. It keeps a generator and Adams of its own. Reliabilities are computed of
dense matrices. Each round's global models are compared, beside what rounding does (a plain server whose mean
is one unit in the last place larger) and how far they are from the mean, which is what the distillation does.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, relu
from torch_geometric.nn import GCNConv

from fedmpi.algorithms import fedtad
from fedmpi.benchmarks.federation import Prepared, prepare
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.models.distillation import Distillation
from fedmpi.registry.check import check_suite
from fedmpi.runs.signals import StopRequest

SUITE = """
name = "methods/fedtad"
[case]
dataset = "Cora"
partition = { name = "louvain", clients = 10, parts = "20/40/40" }
model = { name = "gcn", layers = 2, head_layers = 1 }
share = "all"
participation = 0.5
local_epochs = 3
optimizer = { lr = 0.01 }
algorithm = "fedtad"
"""
NODES, NEIGHBOURS, GRAPHS, MODEL_STEPS, RATE, DECAY, WALKS = 100, 5, 5, 5, 1e-3, 5e-4, 5


class Gcn(nn.Module):
    """Linear, two GCN convolutions with ReLU, Linear; in fedmpi's order of parameters."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.pre = nn.Linear(width, hidden)
        self.convs = nn.ModuleList(GCNConv(hidden, hidden) for _ in range(2))
        self.readout = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return outputs for all nodes, without dropout."""
        x = self.pre(x)
        for conv in self.convs:
            x = dropout(relu(conv(x, edges)), training=False)
        return self.readout(x)  # type: ignore[no-any-return]


class Generator(nn.Module):
    """Embedding of the class beside noise, three layers with tanh, Linear."""

    def __init__(self, noise: int, width: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, classes)
        sizes = [noise + classes, 64, 128, 256]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.last = nn.Linear(256, width)

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Return features of nodes."""
        x = torch.cat([self.embed(labels), noise], dim=1)
        for layer in self.layers:
            x = layer(x).tanh()
        return self.last(x)  # type: ignore[no-any-return]


class Server:
    """The plain server: generator and both Adams stay from round to round."""

    def __init__(self, width: int, hidden: int, classes: int, generator: Tensor) -> None:
        self.classes, self.model = classes, Gcn(width, hidden, classes)
        self.client = Gcn(width, hidden, classes)
        self.generator = Generator(32, width, classes)
        assign(self.generator, generator)
        self.theirs = torch.optim.Adam(self.model.parameters(), RATE, weight_decay=DECAY)
        self.ours = torch.optim.Adam(self.generator.parameters(), RATE, weight_decay=DECAY)
        each = NODES // classes
        self.labels = torch.tensor([min(node // each, classes - 1) for node in range(NODES)])

    def round(self, mean: Tensor, clients: list[Tensor], shares: Tensor, noise: list[Tensor]) -> Tensor:
        """Return the global model after the game."""
        assign(self.model, mean)
        for drawn in noise:
            self._step_generator(drawn, clients, shares)
            with torch.no_grad():
                x = self.generator(drawn, self.labels)
            edges = self._graph(x)
            for _ in range(MODEL_STEPS):
                found = self.model(x, edges)
                loss = torch.zeros(())
                for row, share in zip(clients, shares, strict=True):
                    assign(self.client, row)
                    loss = loss + self._apart(found, self.client(x, edges).detach(), share)
                self.theirs.zero_grad()
                loss.backward()
                self.theirs.step()
        return vector(self.model)

    def _step_generator(self, drawn: Tensor, clients: list[Tensor], shares: Tensor) -> None:
        x = self.generator(drawn, self.labels)
        edges = self._graph(x.detach())
        loss = torch.zeros(())
        for row, share in zip(clients, shares, strict=True):
            client = Gcn(x.shape[1], self.client.pre.out_features, self.classes)
            assign(client, row)
            outputs = client(x, edges)
            for label in range(self.classes):
                chosen = self.labels == label
                loss = loss + share[label] * cross_entropy(outputs[chosen], self.labels[chosen])
            loss = loss - self._apart(self.model(x, edges), outputs.detach(), share)
            apart = (x[:, None] - x[None]).abs().mean(dim=2)
            loss = loss + torch.exp(torch.mean(-(drawn[:, None] - drawn[None]).square().mean(dim=2) * apart))
        self.ours.zero_grad()
        loss.backward()
        self.ours.step()

    def _apart(self, first: Tensor, second: Tensor, share: Tensor) -> Tensor:
        """Return the sum over classes of share times mean absolute difference."""
        loss = torch.zeros(())
        for label in range(self.classes):
            chosen = self.labels == label
            loss = loss + share[label] * (first[chosen] - second[chosen]).abs().mean(dim=1).mean()
        return loss

    def _graph(self, x: Tensor) -> Tensor:
        """Return edges to the most similar nodes and back, int64 [2, E]."""
        unit = x / x.norm(dim=1, keepdim=True)
        near = (unit @ unit.T).topk(NEIGHBOURS, dim=1).indices
        matrix = torch.zeros(len(x), len(x))
        matrix.scatter_(1, near, 1.0)
        return ((matrix + matrix.T) * (1 - torch.eye(len(x)))).nonzero().T


def assign(module: nn.Module, values: Tensor) -> None:
    """Copy a vector into a module's parameters."""
    with torch.no_grad():
        pieces = torch.split(values, [each.numel() for each in module.parameters()])
        for parameter, piece in zip(module.parameters(), pieces, strict=True):
            parameter.copy_(piece.view_as(parameter))


def vector(module: nn.Module) -> Tensor:
    """Return a module's parameters as one vector."""
    return torch.cat([each.detach().flatten() for each in module.parameters()])


def reliabilities(graphs: Any, classes: int) -> Tensor:
    """Return a client's reliability of each class, of dense matrices."""
    count, topology = graphs.topology.num_nodes, graphs.topology
    matrix = torch.zeros(count, count, dtype=torch.float64)
    matrix[np.repeat(np.arange(count), np.diff(topology.row_ptr)), np.asarray(topology.columns)] = 1
    step = matrix / matrix.sum(dim=0).clamp_min(1)
    returns, power = [], torch.eye(count, dtype=torch.float64)
    for _ in range(WALKS):
        power = power @ step
        returns.append(power.diagonal().clone())
    rows = torch.cat([torch.from_numpy(graphs.features).double(), torch.stack(returns, dim=1)], dim=1)
    unit = rows / rows.norm(dim=1, keepdim=True)
    closed = matrix + torch.eye(count)
    means = ((unit @ unit.T) * closed).sum(dim=1) / closed.sum(dim=1)
    found = torch.zeros(classes, dtype=torch.float64)
    for place, label in zip(graphs.places, graphs.labels, strict=True):
        found[label] += means[place]
    return found


def prepared() -> Prepared:
    """Return fedmpi's run, ready for its first round."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(SUITE)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
    return prepare(checked, DataSource.from_environment(), World())


def main() -> None:
    """Compare, and print a row for each round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    seen: list[Any] = []
    play, measure = Distillation.run, fedtad.reliability

    def noted(self: Distillation, model: Tensor, trained: int, taught: Any, noise: Any) -> Tensor:
        generator = torch.tensor(self._generator.values())
        found = play(self, model, trained, taught, noise)
        drawn = [torch.tensor(noise(number)) for number in range(GRAPHS)]
        seen.append((model.clone(), taught, drawn, generator, found.clone()))
        return found

    apart: list[float] = []

    def checked(graphs: Any, classes: int, walks: int) -> Any:
        found = measure(graphs, classes, walks)
        apart.append(float(np.abs(found - reliabilities(graphs, classes).numpy()).max()))
        return found

    Distillation.run, fedtad.reliability = noted, checked  # type: ignore[method-assign]
    run = prepared()
    servers: list[Server] = []
    print(f"{'round':>5} {'models':>9} {'rounding':>9} {'distilled':>9}")
    for number in range(rounds):
        run.rounds.run(number, stop=StopRequest(), checkpoint=False)
        mean, taught, drawn, generator, found = seen[-1]
        if not servers:
            network = run.rounds.algorithm.algorithm.network
            shape = network.width, run.case.model.hidden, network.classes
            servers = [Server(*shape, generator) for _ in range(2)]
        starts = mean, torch.nextafter(mean, torch.tensor(torch.inf))
        both = zip(servers, starts, strict=True)
        theirs, nudged = (
            server.round(start, list(taught.models), taught.shares, drawn) for server, start in both
        )
        row = [float((theirs - other).abs().max()) for other in (found, nudged, mean)]
        print(f"{number + 1:5d} {row[0]:9.1e} {row[1]:9.1e} {row[2]:9.1e}", flush=True)
    print(f"reliabilities: {max(apart):.1e}")


if __name__ == "__main__":
    main()
