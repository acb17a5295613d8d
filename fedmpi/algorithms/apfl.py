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

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import MixedModel


class ApflOptions(AlgorithmOptions):
    """Options of APFL."""

    name: Literal["apfl"] = "apfl"
    alpha: float = Field(0.5, ge=0, le=1)
    """Share of the local model in the mixture, or its start; 0 is FedAvg, 1 local training."""
    adaptive: bool = False
    """Each client learns its alpha."""


class Apfl(MixedModel, Algorithm):
    """One global model as FedAvg's; each client mixes it with a model of its own."""

    name: ClassVar[str] = "apfl"
    paper: ClassVar[str] = "Deng et al., arXiv:2003.13461, 2020, Algorithm 1"
    Options: ClassVar[type[AlgorithmOptions]] = ApflOptions
    options: ApflOptions

    def first_share(self) -> float:
        """Return alpha."""
        return self.options.alpha

    def next_share(self, share: float, slope: float, lr: float) -> float:
        """Return alpha after a gradient step, if it is adaptive."""
        return float(np.clip(share - lr * slope, 0, 1)) if self.options.adaptive else share
