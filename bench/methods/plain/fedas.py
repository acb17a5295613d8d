"""FedAS (Yang et al., CVPR 2024): alignment and Fisher weights, and as released (`clientAS`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from plain.method import Method, Setting
from plain.network import Gin, descend, no_drop, vector


class FedAs(Method):
    """The received body is aligned with the client's last one; bodies weigh by Fisher's traces.

    Released: alignment and trace have no dropout; a client that takes part for the first time aligns with its
    first model.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.last: list[Gin | None] = [None] * self.num_clients
        if setting.released:
            self.last = [deepcopy(model) for model in start]

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants, traces = self.setting.draws.participants(round), [0.0] * self.num_clients
        for client in participants:
            model, last = self.models[client], self.last[client]
            aligned = 0 if last is None else int(self.options["alignment_epochs"])
            first = 0 if last is None else self._align(client, round, last, aligned)
            optimizer = self.setting.optimizer(model.parameters())
            for batch, drop in self.setting.steps(
                client, round, range(aligned, aligned + self.setting.epochs), first
            ):
                descend(optimizer, cross_entropy(model(batch, drop), batch.y))
            self.last[client] = deepcopy(model)
            traces[client] = self._trace(client, round)
        self.share(participants, traces, "body")

    def _align(self, client: int, round: int, last: Gin, epochs: int) -> int:
        """Align the received body; return how many steps were taken."""
        model, taken = self.models[client], 0
        everything = self.setting.batch(client, list(range(self.sizes[client])))
        with torch.no_grad():
            embedded = last.embed(everything, no_drop)
        prototypes = {int(c): embedded[everything.y == c].mean(dim=0) for c in everything.y.unique()}
        optimizer = self.setting.optimizer(model.body())
        for batch, drop in self.setting.steps(client, round, range(epochs)):
            current = model.embed(batch, no_drop if self.setting.released else drop)
            apart = []
            for label in batch.y.unique():
                own = current[batch.y == label]
                apart.append(mse_loss(own, prototypes[int(label)].expand_as(own)))
            descend(optimizer, torch.stack(apart).sum())
            taken += 1
        return taken

    def _trace(self, client: int, round: int) -> float:
        model, trace = self.models[client], 0.0
        for numbers, drop in self.setting.draws.sampled(client, round):
            batch = self.setting.batch(client, numbers)
            outputs = model(batch, no_drop if self.setting.released else drop)
            gradients = torch.autograd.grad(cross_entropy(outputs, batch.y), list(model.parameters()))
            trace += sum(float(each.double().square().sum()) for each in gradients)
        return trace

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        last = self.last[client]
        kept = {} if last is None or self.setting.released else {"previous model": vector(last)}
        return super().parameters(client) | kept

    def evaluated(self, client: int) -> Gin:
        """Return the model that the client trained last."""
        return self.last[client] or self.models[client]
