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

from typing import ClassVar, Literal

from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.algorithms.capabilities import TrainingPhases
from fedmpi.algorithms.fedper import HEAD, FedPer


class FedRepOptions(AlgorithmOptions):
    """Options of FedRep."""

    name: Literal["fedrep"] = "fedrep"
    head_epochs: int = Field(10, ge=1)
    """Local epochs of the head, before the body's (`local_epochs`); 10 as in the paper's experiments."""


class FedRep(TrainingPhases, FedPer):
    """FedPer in two phases: the head with the body frozen, then the body with the head frozen."""

    name: ClassVar[str] = "fedrep"
    paper: ClassVar[str] = "Collins et al., ICML 2021, Algorithm 1"
    Options: ClassVar[type[AlgorithmOptions]] = FedRepOptions
    options: FedRepOptions

    def phases(self, local_epochs: int) -> tuple[int, ...]:
        """Return the epochs of head and body."""
        return self.options.head_epochs, local_epochs

    def trains(self, name: str, phase: int) -> bool:
        """Return whether a layer is of the head in the first phase, of the body in the second."""
        return name.startswith(HEAD) == (phase == 0)
