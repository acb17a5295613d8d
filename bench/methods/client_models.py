"""FedGTA's and FED-PUB's means by their authors' released servers and by fedmpi, of the same models.

``python bench/methods/client_models.py FedGTA FED-PUB [--rounds 20]``, where both are checkouts of the
released code. Runs of `fedgta` and `fedpub` train as usual. In every round the released server gets what the
clients sent, and each client's next model is compared. For FedGTA so are confidence and moments, which the
released functions compute of the same propagated labels.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn

from fedmpi.algorithms import fedgta
from fedmpi.benchmarks.federation import prepare
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.exchange.server import Deciding
from fedmpi.registry.check import check_suite
from fedmpi.runs.signals import StopRequest

SUITE = """
name = "methods/client-models"
[case]
dataset = "Cora"
partition = { name = "louvain", clients = 10, parts = "20/40/40" }
model = { name = "gcn", layers = 2, head_layers = 1 }
share = "all"
local_epochs = 3
optimizer = { lr = 0.01 }
algorithm = "%s"
"""

Server = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From statistics [k, s] and models [k, size] to each client's next model [k, size]."""


def released(folder: Path, *names: str, without: tuple[str, ...]) -> list[ModuleType]:
    """Import modules of a checkout; those that it imports and that are not needed are stand-ins."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    for name in without:
        sys.modules[name] = MagicMock()
    found = [importlib.import_module(name) for name in names]
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if name in without or str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    return found


class Model(nn.Module):
    """A model that is one vector."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.from_numpy(values.copy()))


def fedgta_server(server: ModuleType, epsilon: float) -> Server:
    """Return the released server's step."""

    def step(statistics: np.ndarray, models: np.ndarray) -> np.ndarray:
        one = object.__new__(server.FedGTAServer)
        one.args, one.device, one.round_id = SimpleNamespace(gm_alpha=epsilon), "cpu", 0
        sent = {
            "local_models": [Model(each) for each in models],
            "lp_moment_v": list(torch.from_numpy(statistics[:, 1:].copy())),
            "agg_w": list(torch.from_numpy(statistics[:, 0].copy())),
        }
        return np.stack([each["aggregated_model"]["values"].numpy() for each in one.server_execute(sent)])

    return step


def fedpub_server(server: ModuleType, tau: float) -> Server:
    """Return the released server's step."""

    def step(statistics: np.ndarray, models: np.ndarray) -> np.ndarray:
        one, count = object.__new__(server.Server), len(models)
        one.args = SimpleNamespace(n_clients=count, frac=1.0, agg_norm="exp", norm_scale=tau)
        one.logger, one.update_lists, one.sim_matrices = MagicMock(), [], []
        one.model, one.set_weights = None, lambda *_: None
        rows = zip(models, statistics, strict=True)
        one.sd = {
            number: {"model": {"values": model}, "functional_embedding": own, "train_size": 1}
            for number, (model, own) in enumerate(rows)
        }
        one.update(list(range(count)))
        return np.stack([one.sd[f"personalized_{number}"]["model"]["values"] for number in range(count)])

    return step


class Comparison:
    """Calls a released server wherever rank 0 makes the clients' models."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.apart, self.moved = [0.0], [0.0]

    def watch(self) -> Callable[[], None]:
        """Take the place of `Deciding.blend`; return what gives it back."""
        blend = Deciding.blend

        def blending(own: Deciding, rows: np.ndarray) -> None:
            blend(own, rows)
            theirs = self._server(np.concatenate([*own.messages.values()], axis=1), rows)
            for client, model, own_model in zip(own.participants, theirs, rows, strict=True):
                found = own.moves[int(own.group[client])][0]
                self.apart.append(float(np.abs(found - model).max()))
                self.moved.append(float(np.abs(found - own_model).max()))

        def put(method: Any) -> None:
            Deciding.blend = method  # type: ignore[method-assign]

        put(blending)
        return partial(put, blend)


def compared_statistics(client: ModuleType, moments: ModuleType) -> list[float]:
    """Have FedGTA's statistics compared with the released functions'; return where differences are noted."""
    apart, own_confidence, own_moments = [0.0], fedgta.smoothing_confidence, fedgta.moments

    def confidence(smoothed: np.ndarray, degrees: np.ndarray) -> float:
        found = own_confidence(smoothed, degrees)
        theirs = client.info_entropy_rev(torch.from_numpy(smoothed), torch.from_numpy(degrees))
        apart.append(abs(found - float(theirs)) / found)
        return found

    def of_labels(smoothed: np.ndarray, options: Any) -> np.ndarray:
        found = own_moments(smoothed, options)
        theirs = moments.compute_moment(torch.from_numpy(smoothed), options.order, "v", "hybrid").numpy()
        kept = np.delete(theirs, options.order, axis=0)  # the first central moment, 0
        apart.append(float(np.abs(found - kept.ravel()).max()))
        return found

    fedgta.smoothing_confidence, fedgta.moments = confidence, of_labels
    return apart


def run(algorithm: str, server: Server, rounds: int) -> None:
    """Run the rounds and print what was found."""
    comparison = Comparison(server)
    restore = comparison.watch()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(SUITE % algorithm)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
        prepared = prepare(checked, DataSource.from_environment(), World()).rounds
        for round in range(rounds):
            prepared.run(round, stop=StopRequest(), checkpoint=False)
    restore()
    print(f"{algorithm}: {len(comparison.apart) - 1} models")
    print(f"largest difference of a parameter: {max(comparison.apart):.2e}", end="; ")
    print(f"from the client's own model: {max(comparison.moved):.2e}")


def main() -> None:
    """Compare both methods."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fedgta", type=Path)
    parser.add_argument("fedpub", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    stand_ins = ("torchviz", "tasks.node_cls", "gnn_model.scalable.sim_gamlp", "gnn_model.label_propagation")
    names = ("federated.fedgta.fedgta_server", "federated.fedgta.fedgta_client", "gnn_model.gm")
    server, client, moments = released(arguments.fedgta, *names, without=stand_ins)
    apart = compared_statistics(client, moments)
    run("fedgta", fedgta_server(server, 0.5), arguments.rounds)
    print(f"largest difference of confidence (relative) and moments: {max(apart):.2e}")
    (server,) = released(arguments.fedpub, "models.fedpub.server", without=("torch_scatter", "torch_sparse"))
    run("fedpub", fedpub_server(server, 3.0), arguments.rounds)


if __name__ == "__main__":
    main()
