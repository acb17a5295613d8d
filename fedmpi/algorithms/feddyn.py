"""FedDyn: each client's loss gains a linear and a quadratic term, so that local and global optima agree.

Acar, Zhao, Matas Navarro, Mattina, Whatmough and Saligrama, "Federated learning based on dynamic
regularization", ICLR 2021, Algorithm 1. Client k minimises L_k(w) - <g_k, w> + alpha / 2 ||w - w_t||^2
over the shared parameters, by the case's local epochs, and then sets g_k <- g_k - alpha (w_k - w_t).
Participants are averaged uniformly, as there. What is evaluated is the model that the clients get next.

The released code divides alpha by a client's examples over the mean of all clients', clips the gradient of
loss and linear term to norm 10 before it adds the quadratic term (as weight decay), and scores the mean of
the participants' models. Here alpha is the same for all and nothing is clipped, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Ints, Model
from fedmpi.algorithms.program import Client, Memory, Tensors


class FedDynOptions(AlgorithmOptions):
    """Options of FedDyn."""

    name: Literal["feddyn"] = "feddyn"
    alpha: float = Field(0.01, gt=0)
    """Weight of the regularisation; the paper tries 0.001 to 0.1."""


class FedDyn(Algorithm):
    """One global model w; the server has h, a client has g_k, all zero at the start."""

    name = "feddyn"
    paper = "Acar et al., ICLR 2021, Algorithm 1"
    Options = FedDynOptions
    options: FedDynOptions
    central = True

    def begin(self, trained: int, num_clients: int) -> None:
        """Take note of how many clients there are."""
        self._num_clients = num_clients

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, Floats]:
        """Return h = 0."""
        return {"server_h": np.zeros(trained)}

    def weights(self, samples: Ints) -> Ints:
        """Return ones."""
        return np.ones_like(samples)

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return g_k."""
        return {"gradient": Memory("shared")}

    def change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add alpha (w - w_t) - g_k."""
        own = memory["gradient"]
        gradient.add_(model - received, alpha=self.options.alpha)
        gradient[: len(own)] -= own

    def trained(self, client: Client) -> None:
        """Take g_k - alpha (w_k - w_t) for g_k."""
        own = client.memory["gradient"]
        client.memory["gradient"] = own - self.options.alpha * client.moved[: len(own)]

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return the mean of the participants' models less h / alpha.

        Before that, h <- h - alpha / m sum_k (w_k - w_t) over the participants; m counts all clients.
        Running statistics move by the mean, as in FedAvg.
        """
        before, share = self.server["server_h"], num_clients / self._num_clients
        step, part = mean.copy(), slice(len(before))
        self.server["server_h"] = before - self.options.alpha * share * mean[part]
        step[part] -= self.server["server_h"] / self.options.alpha
        return super().update(model, step, num_clients)
