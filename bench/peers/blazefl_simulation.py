"""FedAvg in BlazeFL's simulation on threads or on processes: a peer that fedmpi is timed against.

`ThreadPoolClientTrainer` uses several cores for Python code only where Python has no global lock.
`ProcessPoolClientTrainer` starts its processes anew in every round. Needs an environment of its own with
``blazefl==3.0.0`` and torch-geometric. ``fedmpi bench peers --settings proteins-all --peer PYTHON`` writes
the clients' graphs to a file, starts it and has it take turns with fedmpi; by itself::

    PYTHON bench/peers/blazefl_simulation.py graphs.npz --mode threads
"""

from __future__ import annotations

import resource
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp
from blazefl.core import (
    BaseServerHandler,
    ProcessPoolClientTrainer,
    SHMHandle,
    ThreadPoolClientTrainer,
    deserialize_model,
    serialize_model,
)
from reference import BATCH_SIZE, GIN, LEARNING_RATE, WEIGHT_DECAY, Splits, load_splits, loss_of
from simulation import Rounds, arguments, collate, report
from torch import Tensor
from torch.utils.data import DataLoader

load = cache(load_splits)


@dataclass
class Downlink:
    """The server's model."""

    parameters: Tensor


@dataclass
class Uplink:
    """A client's model, its training graphs and the sum of their losses, and its evaluated graphs."""

    parameters: Tensor | SHMHandle
    trained: int = 0
    loss_sum: float = 0.0
    evaluated: int = 0


@dataclass
class Work:
    """What a process needs to know of a client."""

    graphs: Path
    client: int
    seed: int


@cache
def loaders(graphs: Path, client: int) -> list[DataLoader]:
    """Return a client's batches: to train on, for validation, for the test."""
    return [
        DataLoader(split, batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate)
        for split in load(graphs)[0][client]
    ]


def network(graphs: Path) -> GIN:
    """Return a new model."""
    clients, classes = load(graphs)
    return GIN(clients[0][0][0].num_features, classes)


def train(work: Work, payload: Downlink) -> Uplink:
    """Evaluate the server's model on a client's held-out graphs, then train it for one epoch."""
    training, *held_out = loaders(work.graphs, work.client)
    model = network(work.graphs)
    deserialize_model(model, payload.parameters)
    result = Uplink(payload.parameters)
    model.eval()
    with torch.no_grad():
        for loader in held_out:
            for *inputs, labels in loader:
                loss_of(model(*inputs), labels, reduction="sum").item()
                result.evaluated += len(labels)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for *inputs, labels in training:
        optimizer.zero_grad()
        loss = loss_of(model(*inputs), labels)
        loss.backward()
        optimizer.step()
        result.trained += len(labels)
        result.loss_sum += loss.item() * len(labels)
    result.parameters = serialize_model(model)
    return result


class Threads(ThreadPoolClientTrainer[Uplink, Downlink]):
    """Clients on threads, which share the server's model."""

    def __init__(self, graphs: Path, workers: int) -> None:
        self.graphs, self.num_parallels, self.device = graphs, workers, "cpu"
        self.cache: list[Uplink] = []
        self.stop_event = threading.Event()

    def worker(self, cid: int, device: str, payload: Downlink, stop_event: threading.Event) -> Uplink:
        """Train a client."""
        return train(Work(self.graphs, cid, 0), payload)

    def uplink_package(self) -> list[Uplink]:
        """Return what the clients send."""
        packages, self.cache = self.cache, []
        return packages


class Processes(ProcessPoolClientTrainer[Uplink, Downlink, Work, Uplink]):
    """Clients on processes; models travel in shared memory."""

    def __init__(self, graphs: Path, workers: int) -> None:
        self.graphs, self.num_parallels, self.device = graphs, workers, "cpu"
        self.cache: list[Uplink] = []
        self.manager = mp.Manager()
        self.stop_event = self.manager.Event()
        self.buffer = serialize_model(network(graphs))
        self.tasks = 0

    def prepare_uplink_package_buffer(self) -> Uplink:
        """Return where a client's model goes."""
        return Uplink(self.buffer.clone())

    def convert_buffer_to_uplink(self, buffer: Uplink) -> Uplink:
        """Return it as it is."""
        return buffer

    def get_client_config(self, cid: int) -> Work:
        """Return what a process needs; its random numbers are those of client and task."""
        self.tasks += 1
        return Work(self.graphs, cid, self.tasks)

    @staticmethod
    def worker(
        config: Work,
        payload: Downlink,
        device: str,
        stop_event: threading.Event,
        *,
        shm_buffer: Uplink | None = None,
    ) -> Uplink:
        """Train a client, its model into shared memory."""
        torch.set_num_threads(1)
        torch.manual_seed(config.seed)
        result = train(config, payload)
        shm_buffer.parameters.copy_(result.parameters)
        result.parameters = SHMHandle()
        return result

    uplink_package = Threads.uplink_package


class Server(BaseServerHandler[Uplink, Downlink]):
    """Averages models by training graphs."""

    def __init__(self, model: GIN, clients: list[Splits]) -> None:
        self.model, self.clients = model, clients

    def downlink_package(self) -> Downlink:
        """Return the model."""
        return Downlink(serialize_model(self.model))

    def sample_clients(self) -> list[int]:
        """Return all clients."""
        return list(range(len(self.clients)))

    def global_update(self, buffer: list[Uplink]) -> None:
        """Average what the clients have sent."""
        weights = torch.tensor([each.trained for each in buffer], dtype=torch.float32)
        stacked = torch.stack([each.parameters for each in buffer])
        deserialize_model(self.model, (weights / weights.sum()) @ stacked)


def cpu_seconds() -> float:
    """Return CPU seconds of this process and of all that it has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def main() -> None:
    """Run it and print one JSON object."""
    parser = arguments("FedAvg by BlazeFL.")
    modes: dict[str, Any] = {"threads": Threads, "processes": Processes}
    parser.add_argument("--mode", choices=modes, default="threads")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    server = Server(network(options.graphs), load(options.graphs)[0])
    trainer, rounds = modes[options.mode](options.graphs, options.workers), Rounds()
    trained, loss_sum, evaluated = 0, 0.0, 0
    for _ in range(options.rounds):
        trainer.local_process(server.downlink_package(), server.sample_clients())
        packages = trainer.uplink_package()
        server.global_update(packages)
        trained += sum(each.trained for each in packages)
        loss_sum += sum(each.loss_sum for each in packages)
        evaluated += sum(each.evaluated for each in packages)
        rounds.note(cpu_seconds(), trained, loss_sum, evaluated)
    report(rounds.rows, server.model, server.clients)


if __name__ == "__main__":
    main()
