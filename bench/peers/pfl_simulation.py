"""FedAvg in pfl-research's own simulation on several processes: a peer that fedmpi is timed against.

`SimulatedBackend` deals the users to the processes, which sum their updates and all-reduce the sums. Needs an
environment of its own with ``pfl[pytorch]`` and torch-geometric. ``fedmpi bench peers --settings proteins-all
--peer PYTHON`` writes the clients' graphs to a file, starts it and has it take turns with fedmpi; by itself::

    PYTHON -m torch.distributed.run --nproc-per-node=2 bench/peers/pfl_simulation.py graphs.npz
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchDataDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from reference import BATCH_SIZE, GIN, LEARNING_RATE, WEIGHT_DECAY, hits_of, load_splits, loss_of
from simulation import Rounds, arguments, collate, report
from torch import Tensor
from torch_geometric.data import Data


class Network(GIN):
    """The peer's GIN with the two functions that pfl calls; it counts the graphs that they get."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(width, classes)
        self.trained, self.loss_sum, self.evaluated = 0, 0.0, 0

    def loss(self, x: Tensor, edge_index: Tensor, batch: Tensor, y: Tensor) -> Tensor:
        """Return the mean cross-entropy of a training batch."""
        self.train()
        loss = loss_of(self(x, edge_index, batch), y)
        self.trained += len(y)
        self.loss_sum += loss.item() * len(y)
        return loss

    @torch.no_grad()
    def metrics(self, x: Tensor, edge_index: Tensor, batch: Tensor, y: Tensor) -> dict[str, Weighted]:
        """Return loss and accuracy of a held-out batch."""
        self.eval()
        scores = self(x, edge_index, batch)
        self.evaluated += len(y)
        sums = {"loss": loss_of(scores, y, reduction="sum").item(), "accuracy": hits_of(scores, y)}
        return {name: Weighted(value, len(y)) for name, value in sums.items()}


class Timer(TrainingProcessCallback):
    """Notes the end of each round, after its evaluation."""

    def __init__(self) -> None:
        self.rounds = Rounds()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Note it; never stop."""
        network = model.pytorch_model
        self.rounds.note(time.process_time(), network.trained, network.loss_sum, network.evaluated)
        return False, Metrics()


def dataset(graphs: list[Data], name: str) -> PyTorchDataDataset:
    """Return graphs as a user's dataset, in a new order in every epoch."""
    return PyTorchDataDataset(graphs, user_id=name, shuffle=True, collate_fn=collate)


def run(clients: list[Any], model: PyTorchModel, rounds: int) -> Rounds:
    """Train by FedAvg on all clients in every round, and evaluate each new model on all held-out graphs."""
    users = [dataset(train, str(number)) for number, (train, _, _) in enumerate(clients)]
    sampler = get_user_sampler("minimize_reuse", list(range(len(users))))
    training = FederatedDataset(users.__getitem__, sampler)
    held_out = dataset([graph for _, val, test in clients for graph in (*val, *test)], "held-out")
    evaluation = NNEvalHyperParams(local_batch_size=BATCH_SIZE)
    timer = Timer()
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds,  # which would evaluate training graphs twice in each round
            train_cohort_size=len(users),
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training, training, postprocessors=[WeightByDatapoints()]),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_batch_size=BATCH_SIZE, local_num_epochs=1, local_learning_rate=LEARNING_RATE
        ),
        model_eval_params=evaluation,
        callbacks=[CentralEvaluationCallback(held_out, evaluation), timer],
        send_metrics_to_platform=False,
    )
    return timer.rounds


def main() -> None:
    """Run it; rank 0 prints one JSON object."""
    options = arguments("FedAvg by pfl-research.").parse_args()
    torch.set_num_threads(1)
    clients, classes = load_splits(options.graphs)
    np.random.seed(options.seed)  # all processes deal the same users
    torch.manual_seed(options.seed)
    network = Network(clients[0][0][0].num_features, classes)
    central = torch.optim.SGD(network.parameters(), lr=1.0)
    model = PyTorchModel(network, partial(torch.optim.Adam, weight_decay=WEIGHT_DECAY), central)
    torch.manual_seed(options.seed + 1 + torch.distributed.get_rank())
    rows = torch.tensor(run(clients, model, options.rounds).rows, dtype=torch.float64)
    walls = rows[:, :1].clone()
    torch.distributed.all_reduce(rows)
    if torch.distributed.get_rank() == 0:
        report(torch.cat([walls, rows[:, 1:]], dim=1).tolist(), network, clients)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
