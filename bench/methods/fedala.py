"""FedALA's merging by its authors' released module and by fedmpi, on the same models and graphs.

``python bench/methods/fedala.py ALA.py [--rounds 20]``, where ALA.py is `system/utils/ALA.py` of the released
code. A run of `fedala` trains as usual; in every merging of every client the released module gets the same
received model, the same local model and the same training graphs, and what both merge to is compared. All
training graphs are drawn, in one batch and without dropout, so that no random number decides.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from fedmpi.algorithms.fedala import FedAla
from fedmpi.benchmarks.federation import prepare
from fedmpi.client.state import ClientState
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import check_suite
from fedmpi.runs.signals import StopRequest

SUITE = """
name = "methods/fedala"
[case]
dataset = "PROTEINS"
partition = { name = "chunks", clients = 10 }
share = "all"
kernels = "csr"
model = { dropout = 0.0 }
local_epochs = 5
optimizer = { lr = 0.01 }
algorithm = { name = "fedala", layers = 1, sampled = 1.0, weights_lr = 10.0 }
"""

TENSORS = 2
"""Weight and bias of the last layer: the released code counts tensors."""


class OnGraphs(nn.Module):
    """A client's network on all its training graphs, as the released module calls it."""

    def __init__(self, client: ClientState, parameters: Tensor) -> None:
        super().__init__()
        model = client.model
        self._batch = lambda: client.passes.batch(None)  # type: ignore[union-attr]
        present = model.parameters.clone()
        model.parameters.copy_(parameters)
        self.layers = nn.ParameterList(
            nn.Parameter(each.detach().clone()) for each in model.module.parameters()
        )
        self._names = [slot.name for slot in model.slots]
        self._call = lambda named: torch.func.functional_call(model.module, named, (self._batch(), None))
        model.parameters.copy_(present)

    def forward(self, numbers: Tensor) -> Any:
        """Return the logits of all graphs, whose numbers are in order."""
        return self._call(dict(zip(self._names, self.layers, strict=True)))


class Comparison:
    """Calls the released module wherever a client merges, and keeps how far it is from fedmpi's result."""

    def __init__(self, released: ModuleType) -> None:
        self._released, self._modules, self._weights = released, dict[int, Any](), FedAla._weights
        self.apart: list[tuple[int, float, float]] = []

    def weights(self, algorithm: FedAla, client: Any, own: Any, received: Any) -> Any:
        """Return fedmpi's weights, after both have merged."""
        labels = client.labels.tolist()
        if client.id not in self._modules:
            self._modules[client.id] = self._released.ALA(
                client.id,
                nn.CrossEntropyLoss(),
                list(enumerate(labels)),
                len(labels),
                100,
                layer_idx=TENSORS,
                eta=algorithm.options.weights_lr,
            )
        last, sent, passes = client.memory["last"], client.model.clone(), len(client.work)
        model = client._client
        mine, server = OnGraphs(model, last), OnGraphs(model, sent)
        self._modules[client.id].adaptive_local_aggregation(server, mine)
        weights = self._weights(algorithm, client, own, received)
        merging = sent.clone()
        client.part("weights").unpack(own + (received - own) * weights, merging)
        merged = OnGraphs(model, merging)
        pairs = list(zip(mine.parameters(), merged.parameters(), strict=True))
        moved = list(zip(server.parameters(), merged.parameters(), strict=True))
        largest, way = (max(float((a - b).abs().max()) for a, b in each) for each in (pairs, moved))
        self.apart.append((len(client.work) - passes, largest, way))
        return weights


def main() -> None:
    """Run the rounds and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("released", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    spec = importlib.util.spec_from_file_location("released_ala", arguments.released)
    assert spec is not None and spec.loader is not None
    released = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(released)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(SUITE)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
        rounds = prepare(checked, DataSource.from_environment(), World()).rounds
        comparison = Comparison(released)
        FedAla._weights = lambda *arguments: comparison.weights(*arguments)  # type: ignore[method-assign]
        rounds.begin(None)
        for round in range(arguments.rounds):
            rounds.run(round, stop=StopRequest(), checkpoint=False)
    passes, apart, moved = zip(*comparison.apart, strict=True)
    print(f"{len(apart)} mergings, {sum(passes)} passes of fedmpi")
    print(f"largest difference of a parameter: {max(apart):.2e}; from the received model: {max(moved):.2e}")


if __name__ == "__main__":
    main()
