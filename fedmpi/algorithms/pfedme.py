"""pFedMe: the global model minimises the clients' Moreau envelopes, whose minimisers are the personal models.

Dinh, Tran and Nguyen, "Personalized federated learning with Moreau envelopes", NeurIPS 2020, Algorithm 1.
The envelope of client i is F_i(w) = min_theta f_i(theta) + lambda / 2 ||theta - w||^2, and its gradient
lambda (w - theta_i(w)), with theta_i(w) where the minimum is. For each batch a participant takes K steps of
theta on the batch's loss plus lambda / 2 ||theta - w_i||^2, and then w_i <- w_i - eta lambda (w_i - theta).
The server sets w <- (1 - beta) w + beta mean_i w_i. What is evaluated is theta.

Steps of theta are those of the case's optimizer. As in the released code theta begins a round at the
received model, and each batch where the last one ended. Tensors that are not shared have no mean: the
client's w_i keeps them. Running statistics are those of theta's passes, and move by the mean whatever beta
is. The paper averages participants uniformly; here they weigh as the case says.

The released code adds 0.001 theta to the gradient, takes one batch for an epoch, and trains all clients in
each round, of which a sample is averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Model
from fedmpi.algorithms.program import Client, Evaluated, Memory, Tensors


class PFedMeOptions(AlgorithmOptions):
    """Options of pFedMe."""

    name: Literal["pfedme"] = "pfedme"
    attraction: float = Field(15.0, gt=0)
    """The paper's lambda: large values give the global model."""
    steps: int = Field(5, ge=1)
    """Steps of the personal model for each batch; the paper's K."""
    outer_lr: float = Field(0.005, gt=0)
    """Step length of the client's copy of the global model; the paper's eta."""
    beta: float = Field(1.0, gt=0)
    """How far the server goes from its model to the mean; above 1 beyond it."""


class PFedMe(Algorithm):
    """A personal model per client, and a global one that is drawn to all of them."""

    name = "pfedme"
    paper = "Dinh et al., NeurIPS 2020, Algorithm 1"
    Options = PFedMeOptions
    options: PFedMeOptions
    needs_labels = True

    def begin(self, trained: int, num_clients: int) -> None:
        """Note how many shared parameters there are."""
        self._trained = trained

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return theta."""
        return {"own": Memory("model", start="model", judged=True)}

    def train(self, client: Client) -> None:
        """Take K steps of theta for each batch, and one of w towards it."""
        options, theta, trained = self.options, client.memory["own"], client.trained
        theta.copy_(client.model)
        for batch in client.batches():
            for _ in range(options.steps):
                gradient = client.gradient(batch, at=theta, reported=True)
                client.step(theta, gradient + options.attraction * (theta - client.model))
            client.model.add_(theta - client.model, alpha=options.outer_lr * options.attraction)
            client.model[trained:] = theta[trained:]  # running statistics of its passes

    def evaluated(self, client: Evaluated) -> Any:
        """Return theta."""
        return client.memory["own"]

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Return (1 - beta) w + beta mean_i w_i."""
        step = mean.copy()
        step[: self._trained] *= self.options.beta
        return super().update(model, step, num_clients)

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return K for each epoch."""
        return int(options.steps) * local_epochs, 0
