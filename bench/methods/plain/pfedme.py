"""pFedMe (Dinh et al., NeurIPS 2020): Algorithm 1, and as released (`UserpFedMe`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from plain.method import Method, Setting
from plain.network import Gin, assign, descend, vector


class PFedMe(Method):
    """Algorithm 1 of Dinh et al. 2020; the personal model begins a round at the received one.

    Released: the loss gains 0.001 / 2 ||theta||^2; a client takes one batch for each epoch.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.own = [deepcopy(model) for model in start]

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants, before = self.setting.draws.participants(round), vector(self.models[0])
        for client in participants:
            self._train(client, round)
        self.share(participants, self.sizes)
        mean, beta = vector(self.models[0]).double(), self.options["beta"]
        for model in self.models:
            assign(((1 - beta) * before.double() + beta * mean).float(), model.parameters())

    def _train(self, client: int, round: int) -> None:
        model, own, options = self.models[client], self.own[client], self.options
        assign(vector(model), own.parameters())
        optimizer = self.setting.optimizer(own.parameters())
        steps, epochs = self.setting.steps(client, round, range(self.setting.epochs)), self.setting.epochs
        for batch, drop in islice(steps, epochs) if self.setting.released else steps:
            copy = vector(model)
            for _ in range(int(options["steps"])):
                theta = torch.cat([each.view(-1) for each in own.parameters()])
                envelope = options["attraction"] / 2 * (theta - copy).square().sum()
                if self.setting.released:
                    envelope = envelope + 0.001 / 2 * theta.square().sum()
                descend(optimizer, cross_entropy(own(batch, drop), batch.y) + envelope)
            gradient = options["attraction"] * (copy - vector(own))
            assign(copy - options["outer_lr"] * gradient, model.parameters())

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        return super().parameters(client) | {"own model": vector(self.own[client])}

    def evaluated(self, client: int) -> Gin:
        """Return the personal model."""
        return self.own[client]
