"""APFL: FedAvg, and beside it a local model per client, used in a mixture with the global one.

Deng, Kamani and Mahdavi, "Adaptive personalized federated learning", arXiv:2003.13461, 2020, Algorithm 1.
With w the client's copy of the global model and v its local one, every local step takes w by the gradient
at w, and v by the gradient at alpha v + (1 - alpha) w with respect to v. The mixture with the new global
model is what is evaluated. With `adaptive`, alpha moves once per round, in the first step, by alpha <-
alpha - eta <v - w, gradient at the mixture> (the paper's Eq. 10), and stays in [0, 1]. The paper averages
participants uniformly; here they weigh as the case says.

The released code (FedTorch) mixes the outputs of both models in place of their parameters and takes w after
its step. Its slope is made after the step of v, weighs the gradients of v and w with alpha and 1 - alpha
once more, and gains 0.02 alpha. It scores the mixture with the client's own w, before the average.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Client, Evaluated, Memory, Size, Tensors


class ApflOptions(AlgorithmOptions):
    """Options of APFL."""

    name: Literal["apfl"] = "apfl"
    alpha: float = Field(0.5, ge=0, le=1)
    """Share of the local model in the mixture, or its start; 0 is FedAvg, 1 local training."""
    adaptive: bool = False
    """Each client learns its alpha."""


class Apfl(Algorithm):
    """One global model as FedAvg's; each client mixes it with a model of its own."""

    name = "apfl"
    paper = "Deng et al., arXiv:2003.13461, 2020, Algorithm 1"
    Options = ApflOptions
    options: ApflOptions
    needs_labels = True

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return v and alpha."""
        own = Memory("model", start="model", judged=True)
        return {"own": own, "share": Memory(1, start=self.options.alpha)}

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return those of v."""
        return {"own": "model"}

    def train(self, client: Client) -> None:
        """Take each step of w at w, and of v at the mixture of both as they were before."""
        own, share, trained = client.memory["own"], client.memory["share"], slice(client.trained)
        for number, batch in enumerate(client.batches()):
            before = client.model.clone()
            client.step(client.model, client.gradient(batch))
            mixture = _mixture(before, own, share)
            gradient = client.gradient(batch, at=mixture)
            slope = (own - before)[trained].double().dot(gradient[trained].double())
            client.step(own, gradient * share, moments="own")
            own[trained.stop :] = mixture[trained.stop :]  # running statistics of its pass
            if number == 0 and self.options.adaptive:
                share.fill_(next_share(float(share), float(slope), client.lr))

    def evaluated(self, client: Evaluated) -> Any:
        """Return the mixture with the new global model."""
        return _mixture(client.model, client.memory["own"], client.memory["share"])

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs of both models."""
        return 2 * local_epochs, 0


def next_share(share: float, slope: float, lr: float) -> float:
    """Return alpha after a gradient step (Eq. 10)."""
    return float(np.clip(share - lr * slope, 0, 1))


def _mixture(model: Any, own: Any, share: Any) -> Any:
    """Return ``alpha v + (1 - alpha) w``."""
    return model + share * (own - model)
