"""APFL (Deng et al., arXiv:2003.13461): Algorithm 1, and as released (FedTorch)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch

from plain.method import Method, Setting
from plain.network import Drop, Gin, assign, descend, no_drop, vector


class Apfl(Method):
    """Algorithm 1 of Deng et al. 2020, with the new global model in the mixture that is evaluated.

    Released: outputs are mixed in place of parameters; the global model takes its step first; alpha's slope
    weighs each model's gradient with its share once more, is taken after the step, and gains 0.02 alpha;
    participants weigh the same; the mixture has the client's copy before the mean.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.own = [deepcopy(model) for model in start]
        self.copies = [deepcopy(model) for model in start]
        self.alphas = [torch.tensor(float(options["alpha"])) for _ in start]

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        step = self._step_released if self.setting.released else self._step
        for client in participants:
            first = self.setting.optimizer(self.models[client].parameters())
            second = self.setting.optimizer(self.own[client].parameters())
            steps = self.setting.steps(client, round, range(self.setting.epochs))
            for number, (batch, drop) in enumerate(steps):
                slope = step(client, batch, drop, first, second)
                if number == 0:
                    self.alphas[client] = (self.alphas[client] - self.setting.lr * slope).clamp(0, 1)
            self.copies[client] = deepcopy(self.models[client])
        self.share(participants, [1] * self.num_clients if self.setting.released else self.sizes)

    def _step(
        self,
        client: int,
        batch: Batch,
        drop: Drop,
        first: torch.optim.Optimizer,
        second: torch.optim.Optimizer,
    ) -> Tensor:
        model, own = self.models[client], self.own[client]
        alpha = self.alphas[client].clone().requires_grad_()
        copies = {name: each.detach().clone() for name, each in model.named_parameters()}
        mixed = {name: alpha * each + (1 - alpha) * copies[name] for name, each in own.named_parameters()}
        second.zero_grad()
        cross_entropy(functional_call(own, mixed, (batch, drop)), batch.y).backward()
        descend(first, cross_entropy(model(batch, drop), batch.y))
        second.step()
        assert alpha.grad is not None
        return alpha.grad

    def _step_released(
        self,
        client: int,
        batch: Batch,
        drop: Drop,
        first: torch.optim.Optimizer,
        second: torch.optim.Optimizer,
    ) -> Tensor:
        model, own, alpha = self.models[client], self.own[client], self.alphas[client]
        descend(first, cross_entropy(model(batch, drop), batch.y))
        first.zero_grad()
        outputs = alpha * own(batch, drop) + (1 - alpha) * model(batch, drop)
        descend(second, cross_entropy(outputs, batch.y))
        slope = 0.02 * alpha
        for mine, theirs in zip(own.parameters(), model.parameters(), strict=True):
            assert mine.grad is not None and theirs.grad is not None
            gradient = alpha * mine.grad + (1 - alpha) * theirs.grad
            slope = slope + ((mine - theirs).detach() * gradient).sum()
        return slope

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        own = {"own model": vector(self.own[client]), "alpha": self.alphas[client].view(1)}
        return super().parameters(client) | own

    def classes(self, client: int, batch: Batch) -> Tensor:
        """Return the predicted class of each graph."""
        alpha, own = self.alphas[client], self.own[client]
        if self.setting.released:
            rest = self.copies[client](batch, no_drop)
            return (alpha * own(batch, no_drop) + (1 - alpha) * rest).argmax(dim=1)
        mixed = deepcopy(own)
        mixture = alpha * vector(own) + (1 - alpha) * vector(self.models[client])
        assign(mixture, mixed.parameters())
        return mixed(batch, no_drop).argmax(dim=1)
