"""FedProto (Tan et al., AAAI 2022): Algorithm 1, and as released (`update_weights_het`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss
from torch_geometric.data import Batch

from plain.method import Method, Setting
from plain.network import Gin, descend, no_drop


class FedProto(Method):
    """Algorithm 1 of Tan et al. 2022, with Eq. 6 as a mean weighted by examples.

    Released: single embeddings are compared with the prototypes, not their mean; a client's prototypes are
    made of the embeddings of its last epoch's steps; all clients weigh the same; SGD with momentum 0.5; a
    client's own classes only are predicted.
    """

    def __init__(self, setting: Setting, start: Sequence[Gin], options: Mapping[str, float]) -> None:
        super().__init__(setting, start, options)
        self.prototypes: dict[int, Tensor] = {}

    def round(self, round: int) -> None:
        """Train the participants; make what all get."""
        found: dict[int, list[tuple[int, Tensor]]] = {}
        for client in self.setting.draws.participants(round):
            for label, rows in self._train(client, round).items():
                size = 1 if self.setting.released else len(rows)
                found.setdefault(label, []).append((size, rows.double().mean(dim=0)))
        for label, means in found.items():
            total = sum(size for size, _ in means)
            self.prototypes[label] = torch.stack([size / total * mean for size, mean in means]).sum(0).float()

    def _train(self, client: int, round: int) -> dict[int, Tensor]:
        """Train; return the embeddings of each class that the client's prototypes are made of."""
        model = self.models[client]
        optimizer = self._optimizer(model)
        seen: list[Tensor] = []
        labels: list[Tensor] = []
        for epoch in range(self.setting.epochs):
            seen, labels = [], []
            first = epoch * len(self.setting.draws.batches(client, round, epoch))
            for batch, drop in self.setting.steps(client, round, range(epoch, epoch + 1), first):
                embedding = model.embed(batch, drop)
                loss = cross_entropy(model.readout(model.represent(embedding, drop)), batch.y)
                descend(optimizer, loss + self.options["attraction"] * self._apart(embedding, batch.y))
                seen.append(embedding.detach())
                labels.append(batch.y)
        if not self.setting.released:
            everything = self.setting.batch(client, list(range(self.sizes[client])))
            with torch.no_grad():
                seen, labels = [model.embed(everything, no_drop)], [everything.y]
        rows, classes = torch.cat(seen), torch.cat(labels)
        return {int(label): rows[classes == label] for label in classes.unique()}

    def _apart(self, embedding: Tensor, labels: Tensor) -> Tensor:
        """Return the distance to the prototypes that there are."""
        if self.setting.released:
            if not self.prototypes:
                return torch.zeros(())
            pairs = zip(embedding.detach(), labels.tolist(), strict=True)
            return mse_loss(embedding, torch.stack([self.prototypes.get(one, row) for row, one in pairs]))
        known = [int(label) for label in labels.unique() if int(label) in self.prototypes]
        apart = [mse_loss(embedding[labels == one].mean(dim=0), self.prototypes[one]) for one in known]
        return torch.stack(apart).sum() if apart else torch.zeros(())

    def _optimizer(self, model: Gin) -> torch.optim.Optimizer:
        if not self.setting.released:
            return self.setting.optimizer(model.parameters())
        return torch.optim.SGD(model.parameters(), self.setting.lr, momentum=0.5)

    def parameters(self, client: int) -> dict[str, Tensor]:
        """Return what the client has after the round, by name."""
        known = {f"prototype {label}": each for label, each in self.prototypes.items()}
        return super().parameters(client) | known

    def classes(self, client: int, batch: Batch) -> Tensor:
        """Return the predicted class of each graph."""
        own = {int(graph.y) for graph in self.setting.train[client]}
        labels = [one for one in sorted(self.prototypes) if one in own or not self.setting.released]
        embedding = self.models[client].embed(batch, no_drop)
        apart = torch.cdist(
            embedding.double(), torch.stack([self.prototypes[one] for one in labels]).double()
        )
        return torch.tensor(labels)[apart.argmin(dim=1)]
