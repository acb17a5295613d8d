"""FedVN (Fu et al., AAAI 2025): both phases, and as released (`local_update`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool

from plain.method import Method, Setting
from plain.network import Drop, descend, no_drop
from plain.virtual import VirtualGin


class FedVn(Method):
    """The edge generator by L + lambda_2 L_C, then all else by L + lambda_1 L_D.

    Released: a client's score is that of the last batch, at first 1/2, and that of all clients stays the same
    for all virtual nodes; the part that is fixed has no dropout.
    """

    def __init__(self, setting: Setting, start: Sequence[Any], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.score: Tensor | None = None
        nodes = len(start[0].virtual.states)
        self.last = [torch.full((nodes,), 0.5) for _ in start]

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        scores = torch.stack([self._train(client, round) for client in participants])
        weights = torch.tensor([self.sizes[client] for client in participants], dtype=torch.float64)
        self.score = ((weights / weights.sum()) @ scores.double()).float()
        self.share(participants, self.sizes, "travelling")

    def _train(self, client: int, round: int) -> Tensor:
        """Train in two phases; return the client's mean score."""
        model: VirtualGin = self.models[client].train()
        far = torch.ones_like(self.last[client]) if self.setting.released else self.score
        near = self.last[client] if self.setting.released else self._mean_score(client)
        optimizer, epochs = self.setting.optimizer(model.own()), self.setting.epochs
        for batch, drop in self.setting.steps(client, round, range(epochs)):
            model.train()
            score = model.score(batch, drop)
            loss = cross_entropy(model.classify(batch, score, self._other(drop)), batch.y)
            if far is not None:
                sums = global_add_pool(score, batch.batch, batch.num_graphs)
                cosines = torch.stack([cosine_similarity(sums, each[None]) for each in (near, far)], dim=1)
                wanted = torch.zeros(len(sums), dtype=torch.long)
                apart = cross_entropy(cosines / self.options["temperature"], wanted)
                loss = loss + self.options["contrast"] * apart
                if self.setting.released:
                    near = self.last[client] = sums.mean(dim=0).detach()
            descend(optimizer, loss)
        optimizer = self.setting.optimizer(model.common())
        first = epochs * len(self.setting.draws.batches(client, round, 0))
        for batch, drop in self.setting.steps(client, round, range(epochs, 2 * epochs), first):
            score = model.score(batch, self._other(drop))
            loss = cross_entropy(model.classify(batch, score, drop), batch.y)
            states = model.virtual.states
            unit = normalize(states - states.mean(dim=1, keepdim=True))
            descend(optimizer, loss + self.options["decoupling"] * (unit @ unit.T).square().mean())
        return self._mean_score(client)

    def _other(self, drop: Drop) -> Drop:
        """Return the dropout of the part that is fixed."""
        return no_drop if self.setting.released else drop

    @torch.no_grad()
    def _mean_score(self, client: int) -> Tensor:
        """Return the mean over the training graphs of the sums of their scores."""
        everything = self.setting.batch(client, list(range(self.sizes[client])))
        model = deepcopy(self.models[client]).eval()
        sums = global_add_pool(model.score(everything, no_drop), everything.batch, everything.num_graphs)
        return sums.double().mean(dim=0).float()

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        return super().parameters(client) | ({} if self.score is None else {"score": self.score})

    def classes(self, client: int, batch: Batch) -> Tensor:
        """Return the predicted class of each graph."""
        return deepcopy(self.models[client]).eval()(batch, no_drop).argmax(dim=1)
