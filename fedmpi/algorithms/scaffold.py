"""SCAFFOLD: FedAvg whose local steps are corrected by control variates.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: stochastic controlled averaging for
federated learning", ICML 2020, Algorithm 1 with option II. Updates and control variates are averaged
uniformly, as there; the server's control variate travels behind the model, the clients' changes of
theirs behind their updates. Option II takes the mean gradient from the distance covered, so the
clients' optimizer is plain SGD.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Ints, Model
from fedmpi.algorithms.capabilities import ControlVariates


class ScaffoldOptions(AlgorithmOptions):
    """Options of SCAFFOLD."""

    name: Literal["scaffold"] = "scaffold"
    server_lr: float = Field(1.0, gt=0)
    """The global step length eta_g."""


class Scaffold(ControlVariates, Algorithm):
    """One global model x and control variate c; a client has its own, c_i, zero at the start."""

    name: ClassVar[str] = "scaffold"
    paper: ClassVar[str] = "Karimireddy et al., ICML 2020, Algorithm 1, option II"
    Options: ClassVar[type[AlgorithmOptions]] = ScaffoldOptions
    options: ScaffoldOptions

    def __init__(self, options: AlgorithmOptions) -> None:
        super().__init__(options)
        self._trained = self._num_clients = 0

    def begin(self, trained: int, num_clients: int) -> None:
        """Take note of how many parameters and clients there are."""
        self._trained, self._num_clients = trained, num_clients

    def weights(self, samples: Ints) -> Ints:
        """Return ones."""
        return np.ones_like(samples)

    def correction(self, own: Any, server: Any) -> Any:
        """Return ``c - c_i``, added to the gradient in every local step."""
        return server - own

    def renewed(self, own: Any, server: Any, moved: Any, steps: int, lr: float) -> Any:
        """Return ``c_i - c + (x - y_i) / (K eta_l)``, the client's next control variate.

        See `ControlVariates.renewed`.
        """
        return own - server - moved / (steps * lr)

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return x and c after ``x + eta_g mean`` and ``c + |S| / N mean`` of the changes of c_i.

        Running statistics move by the mean, as in FedAvg: a longer step could make a variance negative.
        """
        half, step = len(model) // 2, mean.copy()
        step[: self._trained] *= self.options.server_lr
        step[half:] *= num_clients / self._num_clients
        return super().update(model, step, num_clients)
