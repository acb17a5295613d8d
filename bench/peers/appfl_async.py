"""APPFL's asynchronous run over MPI: the peer that fedmpi's runs by the real clock are timed against.

The program of APPFL's example ``examples/mpi/run_batched_mpi_async.py``: rank 0 serves, each other rank
trains its share of the clients in turn, and sends each model as it is trained. Needs an environment of its
own with ``appfl==1.12.0``, mpi4py and torch-geometric. ``fedmpi bench peers --settings asynchronous --peer
PYTHON`` writes the clients' graphs to a file, starts it and has it take turns with fedmpi; by itself::

    mpiexec -n 3 PYTHON bench/peers/appfl_async.py graphs.npz --updates 100
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from appfl.agent import ClientAgent, ServerAgent
from appfl.algorithm.trainer import VanillaTrainer
from appfl.comm.mpi import MPIClientCommunicator, MPIServerCommunicator
from mpi4py import MPI
from omegaconf import OmegaConf
from reference import BATCH_SIZE, GIN, LEARNING_RATE, WEIGHT_DECAY, load_splits
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

SCRIPT = str(Path(__file__).resolve())


class Network(GIN):
    """The peer's GIN, which APPFL calls with a batch."""

    def forward(self, data: Batch) -> Tensor:
        """Return logits [B, C]."""
        return super().forward(data.x, data.edge_index, data.batch)


class GraphTrainer(VanillaTrainer):
    """APPFL's trainer with PyTorch Geometric's batches."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.train_dataloader = DataLoader(self.train_dataset, batch_size=BATCH_SIZE, shuffle=True)


def pairs(graphs: list[Data]) -> list[tuple[Data, Tensor]]:
    """Return graphs with their labels, as APPFL's trainer takes them."""
    return [(graph, graph.y[0]) for graph in graphs]


def datasets(path: str, client: int) -> tuple[list[tuple[Data, Tensor]], None]:
    """Return what a client trains on; there is no validation while others wait."""
    return pairs(load_splits(Path(path))[0][client][0]), None


def accuracy(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the percentage of right predictions, as in APPFL's examples."""
    return float(100 * np.mean(scores.argmax(axis=1) == labels))


class Server(ServerAgent):
    """APPFL's server, which notes when each update is used."""

    def set_sample_size(self, *args: Any, **kwargs: Any) -> Any:
        """Note the CPU seconds so far: clients tell their sizes, then they train."""
        self.cpu_before = time.process_time()
        self.used_at: list[float] = []
        return super().set_sample_size(*args, **kwargs)

    def global_update(self, *args: Any, **kwargs: Any) -> Any:
        """Note the time, unless the update comes too late."""
        is_late = self.training_finished()
        model = super().global_update(*args, **kwargs)
        if not is_late:
            self.used_at.append(time.perf_counter())
            self.cpu_seconds = time.process_time() - self.cpu_before
        return model


def server_settings(options: argparse.Namespace, width: int, classes: int, clients: int, out: str) -> Any:
    """Return APPFL's configuration, as in its ``server_fedasync.yaml`` and ``server_fedbuff.yaml``.

    APPFL divides its rate alpha by the number of clients; FedBuff adds the updates of a buffer. A FedAsync
    server gets models (the paper's mixing), a FedBuff server differences of models.
    """
    buffered, memory = options.buffer > 1, {"optimize_memory": options.optimize_memory}
    train = {
        "trainer": "GraphTrainer",
        "trainer_path": SCRIPT,
        "mode": "epoch",
        "num_local_epochs": 1,
        "optim": "Adam",
        "optim_args": {"lr": LEARNING_RATE, "weight_decay": WEIGHT_DECAY},
        "loss_fn": "CrossEntropyLoss",
        "metric_path": SCRIPT,
        "metric_name": "accuracy",
        "do_validation": False,
        "send_gradient": buffered,
        **memory,
    }
    network = {"width": width, "classes": classes}
    aggregator = {
        "client_weights_mode": "equal",
        "alpha": options.rate * clients / options.buffer,
        "staleness_fn": "polynomial",
        "staleness_fn_kwargs": {"a": options.exponent},
        "gradient_based": buffered,
        "K": options.buffer,
        **memory,
    }
    server = {
        "num_clients": clients,
        "scheduler": "AsyncScheduler",
        "scheduler_kwargs": {"same_init_model": True, **memory},
        "aggregator": "FedBuffAggregator" if buffered else "FedAsyncAggregator",
        "aggregator_kwargs": aggregator,
        "device": "cpu",
        "num_global_epochs": options.updates,
        "logging_output_dirname": out,
        **memory,
    }
    model = {"model_path": SCRIPT, "model_name": "Network", "model_kwargs": network}
    return OmegaConf.create(
        {"client_configs": {"train_configs": train, "model_configs": model}, "server_configs": server}
    )


def serve(comm: MPI.Comm, options: argparse.Namespace, out: str) -> Server:
    """Be APPFL's server until all clients have left."""
    clients, classes = load_splits(options.graphs)
    width = clients[0][0][0].num_features
    torch.manual_seed(options.seed)
    server = Server(server_settings(options, width, classes, len(clients), out))
    MPIServerCommunicator(comm, server, logger=server.logger).serve()
    return server


def work(comm: MPI.Comm, options: argparse.Namespace, out: str) -> dict[str, float]:
    """Train this rank's clients in turn until the server has its updates; return what it took."""
    torch.manual_seed(options.seed + comm.rank)
    count = len(load_splits(options.graphs)[0])
    hosted = np.array_split(np.arange(count), comm.size - 1)[comm.rank - 1].tolist()
    agents = {f"Client{number}": agent(number, options, out) for number in hosted}
    memory = {"optimize_memory": options.optimize_memory}
    server = MPIClientCommunicator(comm, server_rank=0, client_ids=list(agents), **memory)
    settings, model = server.get_configuration(), None
    for each in agents.values():
        each.load_config(settings)
    model = server.get_global_model(init_model=True)
    for each in agents.values():
        each.load_parameters(model)
    sizes = {name: {"sample_size": each.get_sample_size(), "sync": True} for name, each in agents.items()}
    server.invoke_custom_action(action="set_sample_size", kwargs=sizes)
    cpu, trained, trainings, done = time.process_time(), 0.0, 0, False
    while not done:
        for name, each in agents.items():
            start = time.process_time()
            each.train()
            trained, trainings = trained + time.process_time() - start, trainings + 1
            found = each.get_parameters()
            local, told = found if isinstance(found, tuple) else (found, {})
            model, told = server.update_global_model(local, client_id=name, **told)
            if done := told["status"] == "DONE":
                break
            each.load_parameters(model)
    cpu = time.process_time() - cpu
    server.invoke_custom_action(action="close_connection")
    return {"cpu_seconds": cpu, "train_seconds": trained, "trainings": trainings}


def agent(number: int, options: argparse.Namespace, out: str) -> ClientAgent:
    """Return APPFL's client with this number."""
    data = {
        "dataset_path": SCRIPT,
        "dataset_name": "datasets",
        "dataset_kwargs": {"path": str(options.graphs), "client": number},
    }
    train = {"device": "cpu", "logging_output_dirname": out}
    settings = {"client_id": f"Client{number}", "train_configs": train, "data_configs": data}
    return ClientAgent(OmegaConf.create({**settings, "optimize_memory": options.optimize_memory}))


@torch.no_grad()
def score(model: torch.nn.Module, graphs: Path) -> float:
    """Return the mean over clients of the test accuracy."""
    model.eval()
    batches = [Batch.from_data_list(test) for _, _, test in load_splits(graphs)[0]]
    return float(np.mean([accuracy(batch.y.numpy(), model(batch).numpy()) for batch in batches])) / 100


def main() -> None:
    """Run it; rank 0 prints one JSON object."""
    parser = argparse.ArgumentParser(description="APPFL's FedAsync or FedBuff over MPI.")
    parser.add_argument("graphs", type=Path, help="file of the clients' graphs")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--buffer", type=int, default=1, help="updates of a step; more than 1: FedBuff")
    parser.add_argument("--rate", type=float, default=0.6, help="of a step whose updates are not stale")
    parser.add_argument("--exponent", type=float, default=0.5, help="of (1 + staleness)^-exponent")
    about = "collect garbage some 25 times an update: APPFL's default"
    parser.add_argument("--optimize-memory", action="store_true", help=about)
    parser.add_argument("--seed", type=int, default=10)
    options, comm = parser.parse_args(), MPI.COMM_WORLD
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="appfl-") as out:
        if comm.rank > 0:
            comm.gather(work(comm, options, out))
            return
        server = serve(comm, options, out)
    _, *found = comm.gather(None)
    first, last = server.used_at[options.buffer - 1], server.used_at[-1]
    report = {
        "updates": len(server.used_at),
        "update_seconds": (last - first) / (len(server.used_at) - options.buffer),
        "cpu_seconds": [server.cpu_seconds, *(each["cpu_seconds"] for each in found)],
        "train_seconds": sum(each["train_seconds"] for each in found) / sum(e["trainings"] for e in found),
        "test_accuracy": score(server.model, options.graphs),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
