"""FedDyn (Acar et al., ICLR 2021): Algorithm 1, and as released (`train_FedDyn`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_, parameters_to_vector

from plain.method import Method, Setting
from plain.network import Gin, assign, descend, vector


class FedDyn(Method):
    """Algorithm 1 of Acar et al. 2021.

    Released: alpha is divided by a client's examples over the mean of all clients'; the penalty is weight
    decay of the optimizer; gradients are clipped to norm 10, before that decay; the mean of the participants'
    models is evaluated, not the model that the clients get.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.server = vector(start[0])
        self.h = torch.zeros_like(self.server)
        self.gradients = [torch.zeros_like(self.server) for _ in start]
        self.mean = deepcopy(start[0])

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        train = self._train_released if self.setting.released else self._train
        moved = torch.stack([train(client, round) - self.server for client in participants])
        assign(self.server + moved.mean(dim=0), self.mean.parameters())
        alpha = self.options["alpha"]
        if self.setting.released:
            linear = torch.stack(self.gradients).mean(dim=0)
        else:
            self.h = self.h - alpha / self.num_clients * moved.sum(dim=0)
            linear = -self.h / alpha
        self.server = self.server + moved.mean(dim=0) + linear
        for model in self.models:
            assign(self.server, model.parameters())

    def _train(self, client: int, round: int) -> Tensor:
        model, alpha = self.models[client], self.options["alpha"]
        optimizer = self.setting.optimizer(model.parameters())
        for batch, drop in self.setting.steps(client, round, range(self.setting.epochs)):
            present = parameters_to_vector(model.parameters())
            loss = cross_entropy(model(batch, drop), batch.y) - self.gradients[client] @ present
            loss = loss + alpha / 2 * (present - self.server).square().sum()
            descend(optimizer, loss)
        self.gradients[client] = self.gradients[client] - alpha * (vector(model) - self.server)
        return vector(model)

    def _train_released(self, client: int, round: int) -> Tensor:
        model = self.models[client]
        alpha = self.options["alpha"] * sum(self.sizes) / (self.sizes[client] * self.num_clients)
        optimizer = torch.optim.SGD(model.parameters(), self.setting.lr, weight_decay=alpha)
        for batch, drop in self.setting.steps(client, round, range(self.setting.epochs)):
            present = parameters_to_vector(model.parameters())
            linear = present @ (self.gradients[client] - self.server)
            loss = cross_entropy(model(batch, drop), batch.y) + alpha * linear
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(model.parameters(), 10)
            optimizer.step()
        self.gradients[client] = self.gradients[client] + vector(model) - self.server
        return vector(model)

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        return super().parameters(client) | {"vector": self.gradients[client]}

    def evaluated(self, client: int) -> Gin:
        """Return the model that classifies test graphs."""
        return self.mean if self.setting.released else self.models[client]
