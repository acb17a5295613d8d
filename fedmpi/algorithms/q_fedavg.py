"""q-FedAvg: clients with a large loss weigh more, so that accuracies become more even.

Li, Sanjabi, Beirami and Smith, "Fair resource allocation in federated learning", ICLR 2020, Algorithm 2,
for the objective q-FFL, Eq. 2. With F the loss of the received model on the client's training graphs,
without dropout, and L = 1 / lr, a client sends Delta = L (w - w_i) F^q and h = q F^(q-1) |L (w - w_i)|^2 +
L F^q. The server's step is w - sum Delta / sum h. The paper's server samples clients by their share of
the data and then weighs them alike; here all clients are drawn alike, so ``q = 0`` is the plain mean of
the updates. As in the released code, 1e-10 is added to F. L is the paper's estimate for SGD; with Adam
it is only a scale of the step.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Client, Floats, Server


class QFedAvgOptions(AlgorithmOptions):
    """Options of q-FedAvg."""

    name: Literal["q-fedavg"] = "q-fedavg"
    q: float = Field(1.0, ge=0)
    """Weight of fairness; 0 is the plain mean."""


class QFedAvg(Algorithm):
    """``w <- w + sum_i F_i^q (w_i - w) / sum_i h_i / L``."""

    name = "q-fedavg"
    paper = "Li et al., ICLR 2020, Algorithm 2"
    Options = QFedAvgOptions
    options: QFedAvgOptions

    numbers = ("received_loss",)
    decides = frozenset({"weights"})
    needs_labels = True

    def train(self, client: Client) -> None:
        """Report F, and train."""
        client.send("received_loss", client.training_loss())
        client.run_epochs()

    def decide(self, server: Server) -> None:
        """Weigh updates by ``F^q`` and ``sum h / L``."""
        for members in server.groups():
            loss, norm = (server.reports[name][members] for name in ("received_loss", "delta_norm"))
            server.weigh(members, *self.weights_of(loss, norm, server.lr))

    def weights_of(self, loss: Floats, norm: Floats, lr: float) -> tuple[Floats, float]:
        """Return ``F^q`` and ``sum h / L``, both over the largest ``F^q``, which keeps them in range."""
        q, loss = self.options.q, loss + 1e-10
        relative = (loss / loss.max()) ** q
        slope = q * np.square(norm) / lr / loss
        return relative, float((relative * (slope + 1)).sum())

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return one pass beside the epochs."""
        return local_epochs, 1
