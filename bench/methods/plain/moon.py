"""MOON (Li et al., CVPR 2021): Algorithm 1, and as released (`train_net_fedcon`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy
from torch_geometric.data import Batch

from plain.method import Method, Setting
from plain.network import Gin, descend, no_drop, vector


class Moon(Method):
    """Eq. 3 and Algorithm 1 of Li et al. 2021, with the pooled embedding; no term without a previous model.

    Released: SGD with momentum 0.9 and weight decay 1e-5; the embedding is what the last layer sees; a client
    that takes part late contrasts with a random model.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.previous: list[Gin | None] = [None] * self.num_clients

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        participants = self.setting.draws.participants(round)
        for client in participants:
            model, received = self.models[client], deepcopy(self.models[client])
            previous = self._previous(client, round)
            optimizer = self._optimizer(model)
            for batch, drop in self.setting.steps(client, round, range(self.setting.epochs)):
                embedding = model.embed(batch, drop)
                represented = model.represent(embedding, drop)
                loss = cross_entropy(model.readout(represented), batch.y)
                if previous is not None:
                    seen = represented if self.setting.released else embedding
                    frozen = [self._frozen(each, batch) for each in (received, previous)]
                    scores = torch.stack([cosine_similarity(seen, each) for each in frozen], dim=1)
                    none = torch.zeros(len(seen), dtype=torch.long)
                    loss = loss + self.options["mu"] * cross_entropy(
                        scores / self.options["temperature"], none
                    )
                descend(optimizer, loss)
            self.previous[client] = deepcopy(model)
        self.share(participants, self.sizes)

    def _previous(self, client: int, round: int) -> Gin | None:
        if self.previous[client] is None and self.setting.released and round > 0:
            torch.manual_seed(client)
            own = self.models[client]
            return Gin(own.pre.in_features, own.pre.out_features, len(own.convs), own.readout.out_features)
        return self.previous[client]

    def _optimizer(self, model: Gin) -> torch.optim.Optimizer:
        if not self.setting.released:
            return self.setting.optimizer(model.parameters())
        return torch.optim.SGD(model.parameters(), self.setting.lr, momentum=0.9, weight_decay=1e-5)

    @torch.no_grad()
    def _frozen(self, model: Gin, batch: Batch) -> Tensor:
        embedding = model.embed(batch, no_drop)
        return model.represent(embedding, no_drop) if self.setting.released else embedding

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        previous = self.previous[client]
        kept = {} if previous is None else {"previous model": vector(previous)}
        return super().parameters(client) | kept
