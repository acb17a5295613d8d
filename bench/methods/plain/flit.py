"""FLIT and FLIT+ (Zhu et al., Patterns 2022): weighted losses, and as released (`train`)."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, relu
from torch.nn.utils import clip_grad_norm_
from torch_geometric.data import Batch

from plain.method import Method
from plain.network import Drop, Gin, no_drop


class Flit(Method):
    """FLIT: w l with w = (1 - exp(-phi / d) + 1e-7)^gamma.

    Released: the first round is FedAvg's; gradients are clipped to norm 1; directions are uniform in a cube,
    and slopes are divided by their norm and 1e-8.
    """

    plus = False

    def round(self, round: int) -> None:
        """Train the participants; average."""
        participants = self.setting.draws.participants(round)
        for client in participants:
            self._train(client, round)
        self.share(participants, self.sizes)

    def _train(self, client: int, round: int) -> None:
        model, received, scale = self.models[client], deepcopy(self.models[client]), torch.tensor(0.0)
        optimizer = self.setting.optimizer(model.parameters())
        for step, (batch, drop) in enumerate(self.setting.steps(client, round, range(self.setting.epochs))):
            draw = self.setting.draws.noise(client, round, step, tuple(batch.x.shape))
            theirs = [each.detach() for each in self._measures(received, batch, no_drop, draw)]
            own = self._measures(model, batch, drop, draw)
            phi = own[0] + relu(own[0] - theirs[0])
            objective = own[0]
            if self.plus:
                phi = phi + self.options["confidence"] * (own[1] + relu(own[1] - theirs[1]))
                objective = objective + self.options["smoothing"] * own[1]
            mean = phi.mean().detach()
            scale = mean if step == 0 else 0.8 * scale + 0.2 * mean
            weight = (1 - torch.exp(-phi / (scale + 1e-7)) + 1e-7) ** self.options["gamma"]
            loss = own[0] if self.setting.released and round == 0 else weight * objective
            optimizer.zero_grad()
            loss.mean().backward()
            if self.setting.released:
                clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    def _measures(self, model: Gin, batch: Batch, drop: Drop, draw: Tensor) -> list[Tensor]:
        """Return l of each graph, and v."""
        outputs = model(batch, drop)
        loss = cross_entropy(outputs, batch.y, reduction="none")
        if not self.plus:
            return [loss]
        moved = self._moved(model, batch, draw)
        change = cross_entropy(model(moved, drop), outputs.detach().softmax(dim=1), reduction="none")
        return [loss, change]

    def _moved(self, model: Gin, batch: Batch, draw: Tensor) -> Batch:
        """Return the batch at x + r."""
        least = 1e-8 if self.setting.released else 1e-100
        if self.setting.released:
            draw = (draw.abs() % 1) - 0.5
        start = (self.options["xi"] * normalize(draw.double(), eps=least).float()).requires_grad_()
        with torch.no_grad():
            wanted = model(batch, no_drop).softmax(dim=1)
        distance = cross_entropy(model(_at(batch, start), no_drop), wanted, reduction="sum")
        (slope,) = torch.autograd.grad(distance, start)
        return _at(batch, self.options["epsilon"] * normalize(slope.double(), eps=least).float())


class FlitPlus(Flit):
    """FLIT+: with virtual adversarial training."""

    plus = True


def _at(batch: Batch, shift: Tensor) -> Batch:
    """Return a batch with moved features."""
    moved = batch.clone()
    moved.x = batch.x + shift
    return moved
