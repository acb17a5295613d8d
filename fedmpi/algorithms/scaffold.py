"""SCAFFOLD: FedAvg whose local steps are corrected by control variates.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: stochastic controlled averaging for
federated learning", ICML 2020, Algorithm 1 with option II. Updates and control variates are averaged
uniformly, as there; the server's control variate travels behind the model, the clients' changes of
theirs behind their updates. Option II takes the mean gradient from the distance covered, so the
clients' optimizer is plain SGD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Ints, Model
from fedmpi.algorithms.program import Client, Memory, Tensors


class ScaffoldOptions(AlgorithmOptions):
    """Options of SCAFFOLD."""

    name: Literal["scaffold"] = "scaffold"
    server_lr: float = Field(1.0, gt=0)
    """The global step length eta_g."""


class Scaffold(Algorithm):
    """One global model x and control variate c; a client has its own, c_i, zero at the start."""

    name = "scaffold"
    paper = "Karimireddy et al., ICML 2020, Algorithm 1, option II"
    Options = ScaffoldOptions
    options: ScaffoldOptions
    sends = ("control",)
    needs_sgd = True

    def begin(self, trained: int, num_clients: int) -> None:
        """Take note of how many parameters and clients there are."""
        self._trained, self._num_clients = trained, num_clients

    def weights(self, samples: Ints) -> Ints:
        """Return ones."""
        return np.ones_like(samples)

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return c_i."""
        return {"own": Memory("shared")}

    def change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add ``c - c_i``."""
        part = slice(len(memory["own"]))
        gradient[part] += memory["control"][part] - memory["own"]

    def trained(self, client: Client) -> None:
        """Take ``c_i - c + (x - y_i) / (K eta_l)`` for c_i, and send what that adds to it."""
        own, part = client.memory["own"], slice(client.trained_shared)
        moved, control = client.moved, client.incoming["control"][part]
        new = own - control - moved[part] / (client.steps * client.lr)
        added = moved.new_zeros(len(moved))  # running statistics have no control variate
        added[part] = new - own
        client.send("control", added)
        client.memory["own"] = new

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return x and c after ``x + eta_g mean`` and ``c + |S| / N mean`` of the changes of c_i.

        Running statistics move by the mean, as in FedAvg: a longer step could make a variance negative.
        """
        half, step = len(model) // 2, mean.copy()
        step[: self._trained] *= self.options.server_lr
        step[half:] *= num_clients / self._num_clients
        return super().update(model, step, num_clients)
