"""FedALA: a client takes of the global model's upper layers what helps it, element by element.

Zhang, Hua, Wang, Song, Xue, Ma and Guan, "FedALA: adaptive local aggregation for personalized federated
learning", AAAI 2023, Eq. 5 and 6 and Algorithm 1. Before a client trains, its upper `layers` become
own + (received - own) * W, all others are taken as received. W starts at ones; a step takes it by its
gradient and keeps it in [0, 1]. When a client merges for the first time, W trains until the standard
deviation of the last ten epochs' losses is below `threshold` (at most 100 epochs, which the paper does not
limit), later for one epoch; on a share `sampled` of the training graphs.

Layers are those that the case shares: the paper's need `share = "all"`. What is evaluated is the model that a
client trained last. The released code counts layers by parameter tensors, draws consecutive examples, and
evaluates, for every client, what the next round would start from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.fedper import HEAD
from fedmpi.algorithms.program import Client, Evaluated, Memory, Tensors

_LOSSES = 10
"""Epochs over which the losses must be steady in the first merging."""

_MOST_EPOCHS = 100

_NORMS = ("norm.", "graph_norm.")
"""Normalisation is no layer of its own."""


class FedAlaOptions(AlgorithmOptions):
    """Options of FedALA."""

    name: Literal["fedala"] = "fedala"
    layers: int = Field(1, ge=1)
    """Upper layers of the shared ones that are merged by weights; the paper's p."""
    weights_lr: float = Field(1.0, gt=0)
    """Step length of the weights; the paper's eta."""
    sampled: float = Field(0.8, gt=0, le=1)
    """Share of the training graphs on which weights are learned; the paper's s, 80 %."""
    threshold: float = Field(0.1, gt=0)
    """Standard deviation of the losses below which the first training of the weights ends."""


class FedAla(Algorithm):
    """FedAvg's global model, which each client merges into its own by learned weights."""

    name = "fedala"
    paper = "Zhang et al., AAAI 2023, Algorithm 1"
    Options = FedAlaOptions
    options: FedAlaOptions
    needs_labels = True

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return the model that the client trained last, and W."""
        upper = self.upper(tensors.shared)
        return {"last": Memory("model", start=None, judged=True), "weights": Memory(upper, start=None)}

    def upper(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tensors of the last layers; the head comes after all others."""
        layers = [name.rpartition(".")[0] for name in names if not name.startswith(_NORMS)]
        ordered = sorted(dict.fromkeys(layers), key=lambda layer: f"{layer}.".startswith(HEAD))
        upper = ordered[-self.options.layers :]
        return tuple(name for name in names if name.rpartition(".")[0] in upper)

    def train(self, client: Client) -> None:
        """Merge the received upper layers into the client's own, and train."""
        if (last := client.memory["last"]) is not None:
            upper = client.part("weights")
            own, received = upper.pack(last), upper.pack(client.model)
            weights = client.memory["weights"] = self._weights(client, own, received)
            upper.unpack(own + (received - own) * weights, client.model)
        client.run_epochs()
        client.memory["last"] = client.model

    def _weights(self, client: Client, own: Any, received: Any) -> Any:
        """Return W after gradient steps: over one epoch, or the first time until the losses are steady."""
        weights, upper = client.memory["weights"], client.part("weights")
        first = weights is None
        weights = own.new_ones(len(own)) if first else weights.clone()
        candidate, difference = client.model.clone(), received - own
        batches, losses = client.sample(self.options.sampled), list[float]()
        while len(losses) < (_MOST_EPOCHS if first else 1):
            found = []
            for batch in batches:
                upper.unpack(own + difference * weights, candidate)
                gradient = upper.pack(client.gradient(batch, at=candidate))
                weights = (weights - self.options.weights_lr * gradient * difference).clamp(0, 1)
                found.append(client.loss())
            losses.append(float(np.mean(found)))
            if len(losses) > _LOSSES and np.std(losses[-_LOSSES:]) < self.options.threshold:
                break
        return weights

    def evaluated(self, client: Evaluated) -> Any:
        """Return the model that the client trained last."""
        last = client.memory["last"]
        return client.model if last is None else last
