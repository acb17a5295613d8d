"""FedRep (Collins et al., ICML 2021): Algorithm 1, and as released (`LocalUpdate`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from plain.method import Method
from plain.network import descend


class FedRep(Method):
    """Algorithm 1 of Collins et al. 2021.

    Released: SGD with momentum 0.5, and weight decay 1e-4 of weights but not of biases.
    """

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        for client in participants:
            model, heads = self.models[client], int(self.options["head_epochs"])
            steps = 0
            phases = (range(heads), range(heads, heads + self.setting.epochs))
            for part, epochs in zip((model.head(), model.body()), phases, strict=True):
                optimizer = self._optimizer(part)
                for batch, drop in self.setting.steps(client, round, epochs, steps):
                    descend(optimizer, cross_entropy(model(batch, drop), batch.y))
                    steps += 1
        self.share(participants, self.sizes, "body")

    def _optimizer(self, part: list[nn.Parameter]) -> torch.optim.Optimizer:
        if not self.setting.released:
            return self.setting.optimizer(part)
        weights: dict[str, Any] = {"params": [each for each in part if each.dim() > 1], "weight_decay": 1e-4}
        biases: dict[str, Any] = {"params": [each for each in part if each.dim() == 1]}
        return torch.optim.SGD([weights, biases], self.setting.lr, momentum=0.5)
