"""FedSage+'s phase before round 1 by plain torch, with the released loss, and by fedmpi.

``python bench/methods/fedsage_plus.py fedsage [--clients 3] [--epochs 5]``, where `fedsage` is a checkout of
the released code. Both start from the same numbers and draw the same noise. The plain version has dense
matrices, torch's Adam and the released `greedy_loss` for a client's own hidden nodes; in the exchanges each
client computes gradients of the other clients' weights, as in the paper's Algorithm 1, where fedmpi computes
those of generated features. Compared are the generated nodes, their features and the weights of fGen.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, relu, smooth_l1_loss

from fedmpi.algorithms.fedsage_plus import FedSagePlus
from fedmpi.benchmarks.federation import prepare
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.engine.mender import Mender
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models.generator import Generator
from fedmpi.models.neighgen import Draws, NeighGen, Sage
from fedmpi.registry.check import check_suite

SUITE = """
name = "methods/fedsage-plus"
[case]
dataset = "Cora"
partition = { name = "louvain", clients = %d, parts = "20/40/40" }
model = { name = "sage", layers = 2, head_layers = 1 }
share = "all"
algorithm = "fedavg"
"""

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def released_loss(folder: Path) -> Loss:
    """Return the released `greedy_loss`, which is told to compare with all hidden neighbours."""
    config, package = SimpleNamespace(cuda=False, num_pred=10**6), ModuleType("src.utils")
    package.config = config  # type: ignore[attr-defined]
    sys.modules["src"], sys.modules["src.utils"] = ModuleType("src"), package
    spec = importlib.util.spec_from_file_location("feat_loss", folder / "src/models/feat_loss.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loss: Loss = module.greedy_loss
    return loss


def adjacency(topology: Topology) -> Tensor:
    """Return A as a dense matrix."""
    rows = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    matrix = torch.zeros(topology.num_nodes, topology.num_nodes)
    matrix[rows, np.asarray(topology.columns)] = 1
    return matrix


def sage(layers: Sage, matrix: Tensor, x: Tensor) -> Tensor:
    """Return two GraphSAGE layers, from their definition."""
    means = matrix / matrix.sum(dim=1, keepdim=True).clamp(min=1)
    state = relu(layers.own[0](x) + layers.mean[0](means @ x))
    return layers.own[1](state) + layers.mean[1](means @ state)  # type: ignore[no-any-return]


class Plain:
    """A client's phase in plain torch, from the same network and hidden nodes as a `Mender`."""

    def __init__(
        self, mender: Mender, graphs: GraphSet, settings: Generator, client: int, loss: Loss
    ) -> None:
        self.network: NeighGen = deepcopy(mender._network)
        self.settings, self.client, self._loss = settings, client, loss
        part, self.whole = mender._part, torch.from_numpy(graphs.features)
        self.whole_matrix, self._matrix = adjacency(graphs.topology), adjacency(part.topology)
        self._x, self._missing = self.whole[part.kept], torch.from_numpy(part.missing)
        self._targets = torch.zeros(len(part.kept), int(part.missing.max()), self.whole.shape[1])
        for node in range(len(part.kept)):
            hidden = part.hidden[part.hidden_ptr[node] : part.hidden_ptr[node + 1]]
            self._targets[node, : len(hidden)] = self.whole[hidden]
        self._places, self._labels = mender._batch.places, mender._batch.labels
        self._adam = self._optimizer(self.network)

    def _optimizer(self, module: torch.nn.Module) -> torch.optim.Adam:
        return torch.optim.Adam(
            module.parameters(), lr=self.settings.lr, weight_decay=self.settings.weight_decay
        )

    def states(self, matrix: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the encoder's states, dGen's numbers, and these rounded."""
        z = sage(self.network.encoder, matrix, x)
        numbers = relu(self.network.number(z))[:, 0]
        return z, numbers, torch.floor(numbers.detach() + 0.5).clamp(max=self.settings.most).int()

    def features(self, network: NeighGen, z: Tensor, epoch: int) -> Tensor:
        """Return fGen's features of every node, [N, P, d]."""
        first, second, third = network.features
        state = z + Draws(3, self.client, epoch).noise(*z.shape)
        rows = torch.tanh(third(relu(second(relu(first(state))))))
        return rows.view(len(z), self.settings.most, -1)

    def own(self, generated: Tensor, counts: Tensor) -> Tensor:
        """Return L^f by the released function, and L^c on the mended graph."""
        known = ((counts > 0) & (self._missing > 0)).nonzero()[:, 0].tolist()  # all others cost nothing
        by_node = [self.nearest(generated[[node]], node, counts[[node]]) for node in known]
        feature = sum(by_node, torch.zeros(())) / len(counts)
        wanted = torch.arange(self.settings.most) < counts[:, None]
        new, owners = generated[wanted], wanted.nonzero()[:, 0]
        nodes, size = len(counts), len(counts) + len(new)
        matrix = torch.zeros(size, size)
        matrix[:nodes, :nodes] = self._matrix
        matrix[owners, torch.arange(nodes, size)] = matrix[torch.arange(nodes, size), owners] = 1
        outputs = sage(self.network.classifier, matrix, torch.cat([self._x, new]))
        return feature + cross_entropy(outputs[self._places], self._labels)

    def nearest(self, generated: Tensor, node: int, counts: Tensor) -> Tensor:
        """Return the loss of a node's features by the released function, of one hidden neighbour at a time.

        Of several it does not take the least: it compares a sum over the d features with a mean over them.
        """
        one, targets = torch.ones(1), self._targets[node, : int(self._missing[node])]
        found = [self._loss(generated, target.view(1, 1, -1), counts, one) for target in targets]
        return torch.stack(found).min(dim=0).values.mean()

    def train_alone(self) -> None:
        """Take the first phase's epochs."""
        for epoch in range(self.settings.epochs):
            z, numbers, counts = self.states(self._matrix, self._x)
            loss = smooth_l1_loss(numbers, self._missing.float())
            loss = loss + self.own(self.features(self.network, z, epoch), counts)
            self._adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._adam.step()
        with torch.no_grad():
            self.z, _, self.counts = self.states(self._matrix, self._x)
        self._adam = self._optimizer(self.network.features)

    def gradients_for(self, other: Plain, epoch: int) -> tuple[Tensor, ...]:
        """Return gradients of another client's fGen, which that client sent with its states."""
        wanted = torch.arange(self.settings.most) < other.counts[:, None]
        rows = other.features(other.network, other.z, epoch)[wanted]
        distances = torch.cdist(rows.double(), self.whole.double()).square().min(dim=1).values
        loss = distances.sum() / (len(other.z) * self.settings.most * self.whole.shape[1])
        return torch.autograd.grad(loss, list(other.network.features.parameters()))

    def learn(self, epoch: int, gradients: list[tuple[Tensor, ...]]) -> None:
        """Take an exchange's step; without generated nodes there is none."""
        if not self.counts.any():
            return
        loss = self.own(self.features(self.network, self.z, epoch), self.counts)
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for place, parameter in enumerate(self.network.features.parameters()):
            assert parameter.grad is not None
            parameter.grad += torch.stack([each[place] for each in gradients]).sum(dim=0)
        self._adam.step()


def by_fedmpi(menders: list[Mender], exchanges: int) -> None:
    """Take the phase by fedmpi."""
    for mender in menders:
        mender.train_alone()
    for number in range(exchanges):
        rows = [mender.generate(number) for mender in menders]
        sums = [
            sum(other.answer(own) for other in menders if other is not me)
            for me, own in zip(menders, rows, strict=True)
        ]
        for mender, answers in zip(menders, sums, strict=True):
            mender.learn(answers)  # type: ignore[arg-type]


def by_torch(clients: list[Plain], settings: Generator) -> None:
    """Take the phase in plain torch."""
    for client in clients:
        client.train_alone()
    for number in range(settings.epochs, settings.epochs + settings.exchanges):
        gradients = [
            [other.gradients_for(me, number) for other in clients if other is not me] for me in clients
        ]
        for client, theirs in zip(clients, gradients, strict=True):
            client.learn(number, theirs)


def parts(clients: int) -> list[GraphSet]:
    """Return the clients' parts of Cora."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(SUITE % clients)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
        prepared = prepare(checked, DataSource.from_environment(), World())
    return [prepared.federation.data(prepared.case, number)[0] for number in range(clients)]


@torch.no_grad()
def compare(menders: list[Mender], clients: list[Plain], starts: list[Tensor], settings: Generator) -> None:
    """Print the largest differences."""
    weights, moved, features, nodes, equal = [], [], [], 0, True
    for mender, client, start in zip(menders, clients, starts, strict=True):
        found = mender.mend()
        z, _, counts = client.states(client.whole_matrix, client.whole)
        wanted = torch.arange(settings.most) < counts[:, None]
        rows = client.features(client.network, z, settings.epochs + settings.exchanges)[wanted].numpy()
        same = np.array_equal(wanted.nonzero()[:, 0].numpy(), found.neighbours)
        equal, nodes = equal and same, nodes + len(found.neighbours)
        if same and len(rows):
            features.append(float(np.abs(rows - found.features).max()))
        own = torch.cat([each.view(-1) for each in mender._network.features.parameters()])
        theirs = torch.cat([each.view(-1) for each in client.network.features.parameters()])
        weights.append(float((own - theirs).abs().max()))
        moved.append(float((own - start).abs().max()))
    print(f"{nodes} generated nodes, joined to the same nodes: {'yes' if equal else 'NO'}")
    print(f"largest difference of a feature: {max(features, default=0.0):.2e}")
    print(f"largest difference of a weight: {max(weights):.2e}; from its start: {max(moved):.2e}")


def main() -> None:
    """Compare both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("released", type=Path)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    graphs = parts(arguments.clients)
    options = {
        "epochs": arguments.epochs,
        "exchanges": arguments.epochs,
        "dropout": 0.0,
        "hidden_share": 0.3,
        "lr": 0.01,
    }
    settings = FedSagePlus(FedSagePlus.Options(name="fedsage-plus", **options)).generator()
    menders = [Mender(settings, part, 7, 3, number) for number, part in enumerate(graphs)]
    starts = [
        torch.cat([each.detach().clone().view(-1) for each in mender._network.features.parameters()])
        for mender in menders
    ]
    loss = released_loss(arguments.released)
    clients = [
        Plain(mender, part, settings, number, loss)
        for number, (mender, part) in enumerate(zip(menders, graphs, strict=True))
    ]
    by_fedmpi(menders, settings.exchanges)
    by_torch(clients, settings)
    compare(menders, clients, starts, settings)


if __name__ == "__main__":
    main()
