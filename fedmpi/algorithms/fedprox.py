"""FedProx: FedAvg with a proximal term in the local loss.

Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, "Federated optimization in
heterogeneous networks", MLSys 2020, Algorithm 2 and Eq. 2: clients minimise
F_i(w) + mu / 2 ||w - w_t||^2 over the shared parameters. The released GCFL code
measures the first round's distance from the client's own random start; here it
is the received model in every round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions


class FedProxOptions(AlgorithmOptions):
    """Options of FedProx."""

    name: Literal["fedprox"] = "fedprox"
    mu: float = Field(0.01, ge=0)
    """Weight of the proximal term; 0.01 as GCFL."""


class FedProx(Algorithm):
    """One global model; the local gradient gains mu (w - w_t)."""

    name = "fedprox"
    paper = "Li et al., MLSys 2020, Algorithm 2"
    Options = FedProxOptions
    options: FedProxOptions

    def remark(self, participants: int, one_step: bool) -> str:
        """Say that the proximal term is zero in the first step of a round."""
        reason = "every client takes one step per round (batch_size, local_epochs), where the proximal term"
        return f"{reason} is zero: the results are FedAvg's" if one_step else ""

    def change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add mu (w - w_t), the gradient of Eq. 2's second term."""
        gradient.add_(model - received, alpha=self.options.mu)
