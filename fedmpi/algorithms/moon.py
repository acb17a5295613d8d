"""MOON: embeddings are drawn to the received model's, and away from the client's own last model's.

Li, He and Song, "Model-contrastive federated learning", CVPR 2021, Eq. 3 and Algorithm 1. The local loss
gains mu times -log(exp(s_g / tau) / (exp(s_g / tau) + exp(s_p / tau))), the mean over the batch, where s_g
and s_p are cosine similarities of a graph's embedding with those of the received and of the client's
previous model. An embedding is what the model pools of a graph, before its head; paper and released code
add a projection head of two layers to the network, and compare its outputs. Before a client has a previous
model the term is left out. So does the released code in the first round; a client that takes part for the
first time later contrasts with its random initial model there. Its SGD has momentum 0.9 and weight decay
1e-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Batch, Client, Memory, Tensors

_LEAST_NORM = 1e-8


class MoonOptions(AlgorithmOptions):
    """Options of MOON."""

    name: Literal["moon"] = "moon"
    mu: float = Field(1.0, ge=0)
    """Weight of the contrastive term; the paper tries 0.1, 1, 5 and 10."""
    temperature: float = Field(0.5, gt=0)
    """The paper's tau."""


class Moon(Algorithm):
    """FedAvg whose local loss contrasts received and previous model."""

    name = "moon"
    paper = "Li et al., CVPR 2021, Algorithm 1"
    Options = MoonOptions
    options: MoonOptions
    needs_labels = True
    reads_embeddings = True

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return the client's previous model."""
        return {"previous": Memory("model", start=None)}

    def train(self, client: Client) -> None:
        """Train with Eq. 3's second term once there is a previous model."""
        received, previous = client.embeddings(), client.memory["previous"]
        if previous is None:
            client.run_epochs()
        else:
            past = client.embeddings(previous)

            def contrast(batch: Batch, current: Any) -> Any:
                return self.contrast(current, batch.of(received), batch.of(past))

            client.run_epochs(term=contrast)
        client.memory["previous"] = client.model

    def contrast(self, current: Any, received: Any, previous: Any) -> Any:
        """Return mu times the mean of Eq. 3's second term, from embeddings [B, h] of three models."""
        return self.options.mu * contrast(current, received, previous, self.options.temperature)


def contrast(current: Any, towards: Any, away: Any, temperature: float) -> Any:
    """Return the mean over rows of -log of the softmax of two cosines, that of the row and `towards`.

    Parameters
    ----------
    current : float32 [B, h]
    towards, away : float32 [B, h] or [1, h]
    temperature : float
    """
    near, far = (_cosine(current, frozen) / temperature for frozen in (towards, away))
    return (near.logaddexp(far) - near).mean()


def _cosine(first: Any, second: Any) -> Any:
    """Return the cosine of the angle between each row of both, [B]; 0 with a row of zeros."""
    norms = [rows.norm(dim=1).clamp_min(_LEAST_NORM) for rows in (first, second)]
    return (first * second).sum(dim=1) / (norms[0] * norms[1])
