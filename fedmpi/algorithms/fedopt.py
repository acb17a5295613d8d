"""FedOpt: an optimizer on the server, for which the mean of the clients' updates is the descent direction.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, "Adaptive federated optimization",
ICLR 2021, Algorithm 2: FedAdagrad, FedAdam and FedYogi; no bias correction. FedAvgM is Hsu, Qi and
Brown (2019). FedSGD here is the plain step of length `server_lr`, with which 1 is FedAvg; FedML's
FedOpt of this paper's time always passed a momentum, so its adaptive optimizers never ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Model


class ServerOptions(AlgorithmOptions):
    """What all of the family have."""

    server_lr: float = Field(1.0, gt=0)
    """The server's step length eta."""


class MomentumOptions(ServerOptions):
    """Options of FedAvgM."""

    momentum: float = Field(0.9, ge=0, lt=1)
    """Share of the last step that the next one keeps."""


class AdaptiveOptions(ServerOptions):
    """Options of the adaptive optimizers."""

    server_lr: float = Field(0.01, gt=0)
    """The server's step length eta."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the first moment."""
    beta2: float = Field(0.99, ge=0, lt=1)
    """Decay of the second moment."""
    tau: float = Field(1e-3, gt=0)
    """Degree of adaptivity, added to the root of the second moment."""


class FedOpt(Algorithm):
    """Base of the family: one global model, updated on rank 0, where the moments are.

    Running statistics of the model move by the mean, as in FedAvg.
    """

    options: ServerOptions
    central = True

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, Floats]:
        """Return moments of zero, and of tau^2 (Algorithm 2)."""
        second = np.full(trained, getattr(self.options, "tau", 0.0) ** 2)
        return {"server_first": np.zeros(trained), "server_second": second}

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return the model after the server's step."""
        trained = len(self.server["server_first"])
        step = np.concatenate([self.options.server_lr * self.direction(mean[:trained]), mean[trained:]])
        return super().update(model, step, num_clients)

    def direction(self, mean: Floats) -> Floats:
        """Return the step for a server_lr of 1, float64 [trained], and take note of the mean update."""
        return mean


class FedSgd(FedOpt):
    """FedSGD: the server's step is plain, ``w <- w + eta mean``."""

    name = "fedsgd"
    paper = "McMahan et al., AISTATS 2017; Reddi et al., ICLR 2021"
    Options = ServerOptions


class FedAvgM(FedOpt):
    """FedAvgM: the server has momentum, ``m <- momentum m + mean``, ``w <- w + eta m``."""

    name = "fedavgm"
    paper = "Hsu, Qi and Brown, arXiv:1909.06335, 2019"
    Options = MomentumOptions

    def direction(self, mean: Floats) -> Floats:
        """Return the momentum."""
        assert isinstance(self.options, MomentumOptions)
        first: Floats = self.options.momentum * self.server["server_first"] + mean
        self.server["server_first"] = first
        return first


class _Adaptive(FedOpt):
    """``m <- beta1 m + (1 - beta1) mean``, ``w <- w + eta m / (sqrt(v) + tau)``."""

    Options = AdaptiveOptions
    options: AdaptiveOptions

    def direction(self, mean: Floats) -> Floats:
        """Return the first moment over the root of the second."""
        beta1, kept = self.options.beta1, self.server
        kept["server_first"] = beta1 * kept["server_first"] + (1 - beta1) * mean
        kept["server_second"] = self.second(kept["server_second"], np.square(mean))
        found: Floats = kept["server_first"] / (np.sqrt(kept["server_second"]) + self.options.tau)
        return found

    def second(self, present: Floats, square: Floats) -> Floats:
        """Return the next second moment from the squares of the mean update."""
        raise NotImplementedError


class FedAdagrad(_Adaptive):
    """FedAdagrad: the server's second moment adds up, ``v <- v + mean^2``."""

    name = "fedadagrad"
    paper = "Reddi et al., ICLR 2021, Algorithm 2"

    def second(self, present: Floats, square: Floats) -> Floats:
        """Add the squares."""
        return present + square


class FedAdam(_Adaptive):
    """FedAdam: the server's second moment decays, ``v <- beta2 v + (1 - beta2) mean^2``."""

    name = "fedadam"
    paper = "Reddi et al., ICLR 2021, Algorithm 2"

    def second(self, present: Floats, square: Floats) -> Floats:
        """Let old squares decay."""
        beta2 = self.options.beta2
        return beta2 * present + (1 - beta2) * square


class FedYogi(_Adaptive):
    """FedYogi: it moves by a bounded part, ``v <- v - (1 - beta2) mean^2 sign(v - mean^2)``."""

    name = "fedyogi"
    paper = "Reddi et al., ICLR 2021, Algorithm 2"

    def second(self, present: Floats, square: Floats) -> Floats:
        """Move towards the squares by a part of them."""
        return present - (1 - self.options.beta2) * square * np.sign(present - square)
