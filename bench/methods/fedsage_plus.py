"""FedSage+'s phase before round 1 by plain torch, with the released loss, and by fedmpi.

``python bench/methods/fedsage_plus.py fedsage [--clients 3] [--epochs 4]``, where `fedsage` is a checkout of
the released code. fedmpi trains; at the weights and noise of each step the plain version computes the
gradients again. It has dense matrices, the released `greedy_loss` for a client's own hidden nodes, and in the
exchanges each client computes gradients of the other clients' weights, as in the paper's Algorithm 1, where
fedmpi computes those of generated features.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, relu, smooth_l1_loss

from fedmpi.algorithms.fedsage_plus import FedSagePlus
from fedmpi.benchmarks.federation import prepare
from fedmpi.client.optimizer import adam_steps
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models.generator import Generator
from fedmpi.models.neighgen import Draws, NeighGen, Sage
from fedmpi.models.neighgen_training import NeighGenTraining
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
    """A client's phase in plain torch, from the same network and hidden nodes as a `NeighGenTraining`."""

    def __init__(
        self, trained: NeighGenTraining, graphs: GraphSet, settings: Generator, client: int, loss: Loss
    ) -> None:
        self.network: NeighGen = deepcopy(trained._network)
        self.settings, self.client, self._loss = settings, client, loss
        part, self.whole = trained._part, torch.from_numpy(graphs.features)
        self.whole_matrix, self._matrix = adjacency(graphs.topology), adjacency(part.topology)
        self._x, self._missing = self.whole[part.kept], torch.from_numpy(part.missing)
        self._targets = torch.zeros(len(part.kept), int(part.missing.max()), self.whole.shape[1])
        for node in range(len(part.kept)):
            hidden = part.hidden[part.hidden_ptr[node] : part.hidden_ptr[node + 1]]
            self._targets[node, : len(hidden)] = self.whole[hidden]
        self._places, self._labels = trained._batch.places, trained._batch.labels

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

    def gradients_alone(self, epoch: int) -> tuple[Tensor, ...]:
        """Return the gradients of an epoch of the first phase."""
        z, numbers, counts = self.states(self._matrix, self._x)
        loss = smooth_l1_loss(numbers, self._missing.float())
        loss = loss + self.own(self.features(self.network, z, epoch), counts)
        return torch.autograd.grad(loss, list(self.network.parameters()))

    def gradients_for(self, other: Plain, epoch: int) -> tuple[Tensor, ...]:
        """Return gradients of another client's fGen, which that client sent with its states."""
        wanted = torch.arange(self.settings.most) < other.counts[:, None]
        rows = other.features(other.network, other.z, epoch)[wanted]
        # Many of Cora's nodes are equally far: the same formula chooses one, in the same precision.
        nearest = (self.whole.square().sum(dim=1) - 2 * rows.detach() @ self.whole.T).argmin(dim=1)
        loss = (rows - self.whole[nearest]).square().sum()
        loss = loss / (len(other.z) * self.settings.most * self.whole.shape[1])
        return torch.autograd.grad(loss, list(other.network.features.parameters()))

    def gradients_together(self, epoch: int, others: list[Plain]) -> tuple[Tensor, ...]:
        """Return the gradients of an exchange: its own, and those that the other clients send."""
        with torch.no_grad():
            self.z, _, self.counts = self.states(self._matrix, self._x)
        loss = self.own(self.features(self.network, self.z, epoch), self.counts)
        own = torch.autograd.grad(loss, list(self.network.features.parameters()))
        found = [own, *(other.gradients_for(self, epoch) for other in others)]
        return tuple(torch.stack(each).sum(dim=0) for each in zip(*found, strict=True))


class Comparison:
    """Computes the gradients of each step of a `NeighGenTraining` again, at the same weights.

    Attributes
    ----------
    apart : dict of str to list of float
        By phase, largest difference of a gradient in each step, by the largest gradient.
    """

    def __init__(self, clients: list[Plain]) -> None:
        self._clients = clients
        self.apart: dict[str, list[float]] = {"alone": [], "exchanges": []}

    def watch(self, trained: NeighGenTraining, number: int) -> None:
        """Take the place of a generator's steps."""
        step, plain, done = trained._step, self._clients[number], 0
        others = [each for each in self._clients if each is not plain]

        def watched(*arguments: Any) -> None:
            nonlocal done
            plain.network.load_state_dict(trained._network.state_dict())
            alone = done < plain.settings.epochs
            theirs = plain.gradients_alone(done) if alone else plain.gradients_together(done, others)
            step(*arguments)
            part = trained._network if alone else trained._network.features
            both = list(zip(part.parameters(), theirs, strict=True))
            far = max(float((own.grad - other).abs().max()) for own, other in both)
            largest = max(float(other.abs().max()) for _, other in both)
            self.apart["alone" if alone else "exchanges"].append(far / largest)
            done += 1

        trained._step = watched  # type: ignore[method-assign]


def by_fedmpi(trainings: list[NeighGenTraining], exchanges: int) -> None:
    """Take the phase by fedmpi."""
    for trained in trainings:
        trained.train_alone()
    for number in range(exchanges):
        rows = [trained.generate(number) for trained in trainings]
        sums = [
            sum(other.answer(own) for other in trainings if other is not me)
            for me, own in zip(trainings, rows, strict=True)
        ]
        for trained, answers in zip(trainings, sums, strict=True):
            trained.learn(answers)  # type: ignore[arg-type]


def parts(clients: int) -> list[GraphSet]:
    """Return the clients' parts of Cora."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(SUITE % clients)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
        prepared = prepare(checked, DataSource.from_environment(), World())
    return [prepared.federation.data(prepared.case, number)[0] for number in range(clients)]


def main() -> None:
    """Compare both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("released", type=Path)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
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
    adam = partial(adam_steps, lr=settings.lr, weight_decay=settings.weight_decay)
    trainings = [NeighGenTraining(settings, part, 7, 3, number, adam) for number, part in enumerate(graphs)]
    loss = released_loss(arguments.released)
    clients = [
        Plain(trained, part, settings, number, loss)
        for number, (trained, part) in enumerate(zip(trainings, graphs, strict=True))
    ]
    comparison = Comparison(clients)
    for number, trained in enumerate(trainings):
        comparison.watch(trained, number)
    by_fedmpi(trainings, settings.exchanges)
    print(f"generated nodes: {sum(trained.num_rows for trained in trainings)}")
    for phase, apart in comparison.apart.items():
        print(f"{phase}: {len(apart)} steps, largest difference of a gradient, relative: {max(apart):.2e}")


if __name__ == "__main__":
    main()
