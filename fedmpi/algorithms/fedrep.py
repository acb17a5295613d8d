"""FedRep: participants first fit their own head to the received body, and then the body to that head.

Collins, Hassani, Mokhtari and Shakkottai, "Exploiting shared representations for personalized federated
learning", ICML 2021, Algorithm 1. The body (all layers up to the pooling) is averaged, the head stays with
the client, as with FedPer. The head trains for `head_epochs` with the body frozen, then the body for the
case's `local_epochs` with the head frozen. The paper averages bodies uniformly, with clients of equal size;
here they weigh as the case says, as in the released code. That code has the head train for local_ep -
local_rep_ep epochs (10 in its scripts) by SGD with momentum 0.5 and weight decay of the weights only, and
makes its optimizer anew in every round: `optimizer = { state = "reset" }`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.algorithms.fedper import HEAD, FedPer
from fedmpi.algorithms.program import Client, Size, Tensors


class FedRepOptions(AlgorithmOptions):
    """Options of FedRep."""

    name: Literal["fedrep"] = "fedrep"
    head_epochs: int = Field(10, ge=1)
    """Local epochs of the head, before the body's (`local_epochs`); 10 as in the paper's experiments."""


class FedRep(FedPer):
    """FedPer in two phases: the head with the body frozen, then the body with the head frozen."""

    name = "fedrep"
    paper = "Collins et al., ICML 2021, Algorithm 1"
    Options = FedRepOptions
    options: FedRepOptions

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return the body's; the model's are the head's."""
        return {"body": "model"}

    def train(self, client: Client) -> None:
        """Train the head, then the body."""
        client.run_epochs(epochs=self.options.head_epochs, frozen=lambda name: not name.startswith(HEAD))
        client.run_epochs(moments="body", frozen=lambda name: name.startswith(HEAD))

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs of both."""
        return int(options.head_epochs) + local_epochs, 0
