"""What the plain methods have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data

from plain.network import Drop, Gin, assign, no_drop, vector


@dataclass(frozen=True)
class Draws:
    """What is drawn, by whoever compares."""

    participants: Callable[[int], Sequence[int]]
    """Of a round."""
    batches: Callable[[int, int, int], list[list[int]]]
    """Numbers of the training graphs of each batch, of a client, round and epoch."""
    drop: Callable[[int, int, int], Drop]
    """Dropout of a client, round and step."""
    sampled: Callable[[int, int], Sequence[tuple[list[int], Drop]]]
    """Batches of all training graphs of a client and round, and the dropout of each."""
    noise: Callable[[int, int, int, tuple[int, ...]], Tensor]
    """Normal numbers of a client, round and step, in a shape."""


@dataclass(frozen=True)
class Setting:
    """What the methods have in common."""

    draws: Draws
    train: Sequence[Sequence[Data]]
    """Of each client."""
    validation: Sequence[Sequence[Data]]
    test: Sequence[Sequence[Data]]
    epochs: int
    optimizer: Callable[[Any], torch.optim.Optimizer]
    lr: float
    released: bool = False

    def batch(self, client: int, numbers: list[int]) -> Batch:
        """Return training graphs of a client."""
        return Batch.from_data_list([self.train[client][number] for number in numbers])

    def steps(self, client: int, round: int, epochs: range, first: int = 0) -> Iterator[tuple[Batch, Drop]]:
        """Yield the batch and the dropout of each step; the first has number `first`."""
        step = first
        for epoch in epochs:
            for numbers in self.draws.batches(client, round, epoch):
                yield self.batch(client, numbers), self.draws.drop(client, round, step)
                step += 1


class Method:
    """Clients' models, and how often they are right.

    Parameters
    ----------
    setting : Setting
    start : sequence of Gin
        Each client's model at the start.
    options : mapping of str to number
        Of the method.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        self.setting, self.models = setting, [deepcopy(model) for model in start]
        self.options, self.num_clients = options, len(start)
        self.sizes = [len(graphs) for graphs in setting.train]

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        raise NotImplementedError

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        return {"model": vector(self.models[client])}

    def evaluated(self, client: int) -> Gin:
        """Return the model that classifies test graphs."""
        return self.models[client]

    @torch.no_grad()
    def accuracy(self, client: int) -> float:
        """Return the share of the client's test graphs that are classified rightly."""
        batch = Batch.from_data_list(list(self.setting.test[client]))
        return float((self.classes(client, batch) == batch.y).double().mean())

    def classes(self, client: int, batch: Batch) -> Tensor:
        """Return the predicted class of each graph."""
        return self.evaluated(client)(batch, no_drop).argmax(dim=1)

    @torch.no_grad()
    def validation_loss(self, client: int, parameters: Tensor) -> float:
        """Return the mean loss of a model of these parameters on the client's validation graphs."""
        model = deepcopy(self.models[client])
        assign(parameters, model.parameters())
        batch = Batch.from_data_list(list(self.setting.validation[client]))
        return float(cross_entropy(model(batch, no_drop).double(), batch.y))

    def share(self, participants: Sequence[int], weights: Sequence[float], part: str = "parameters") -> None:
        """Give all clients the weighted mean of the participants' parameters."""
        rows = torch.stack([vector(self.models[client], part).double() for client in participants])
        share = torch.tensor([weights[client] for client in participants], dtype=torch.float64)
        mean = ((share / share.sum()) @ rows).float()
        for model in self.models:
            assign(mean, getattr(model, part)())
