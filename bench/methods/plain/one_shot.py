"""The one-shot ensemble (Guha et al., arXiv:1902.11175); there is no released code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch

from plain.method import Method, Setting
from plain.network import Gin, descend, no_drop, vector


class OneShot(Method):
    """Clients train alone; those of smallest validation loss decide by the mean of their probabilities."""

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.members: list[Gin] = []

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        for client in participants:
            model = self.models[client]
            optimizer = self.setting.optimizer(model.parameters())
            for batch, drop in self.setting.steps(client, round, range(self.setting.epochs)):
                descend(optimizer, cross_entropy(model(batch, drop), batch.y))
        losses = {
            client: self.validation_loss(client, vector(self.models[client])) for client in participants
        }
        best = sorted(losses, key=lambda client: losses[client])[: int(self.options["members"])]
        self.members = [deepcopy(self.models[client]) for client in sorted(best)]

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        members = {f"member {place}": vector(model) for place, model in enumerate(self.members)}
        return super().parameters(client) | members

    def classes(self, client: int, batch: Batch) -> Tensor:
        """Return the predicted class of each graph."""
        probabilities = [model(batch, no_drop).double().softmax(dim=1) for model in self.members]
        return torch.stack(probabilities).mean(dim=0).argmax(dim=1)
