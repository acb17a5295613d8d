"""FedFomo (Zhang et al., ICLR 2021): Eq. 4 to 6, and as released (`compute_fomo_weights`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from plain.method import Method, Setting
from plain.network import Gin, assign, descend, vector


class FedFomo(Method):
    """Eq. 4 to 6 of Zhang et al. 2021; a client gets the models of all participants of the round before.

    Released: the distance of two models is the sum of their absolute differences.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.begun = [vector(model) for model in start]
        self.received: dict[int, Tensor] = {}
        self.affinity = torch.eye(self.num_clients, dtype=torch.float64)

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        for client in participants:
            model = self.models[client]
            assign(self._merged(client, self.begun[client]), model.parameters())
            self.begun[client] = vector(model)
            optimizer = self.setting.optimizer(model.parameters())
            for batch, drop in self.setting.steps(client, round, range(self.setting.epochs)):
                descend(optimizer, cross_entropy(model(batch, drop), batch.y))
        self.received = {client: vector(self.models[client]) for client in participants}

    def _merged(self, client: int, begun: Tensor) -> Tensor:
        models = {**self.received, client: vector(self.models[client])}
        loss, weights = self.validation_loss(client, begun), {}
        for other, model in models.items():
            apart = float(torch.linalg.vector_norm(model - begun, 1 if self.setting.released else 2))
            gain = loss - self.validation_loss(client, model)
            weights[other] = gain / apart if apart > 0 else 0.0
            if other != client:
                self.affinity[client, other] += weights[other]
        total = sum(max(each, 0.0) for each in weights.values())
        shares = {other: max(each, 0.0) / (total or 1.0) for other, each in weights.items()}
        return begun + sum(share * (models[other] - begun) for other, share in shares.items())

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, and its row of the affinity, by name."""
        kept = {"begun model": self.begun[client], "affinity": self.affinity[client].float()}
        return super().parameters(client) | kept
