"""Ditto: FedAvg, and beside it a personal model per client that is drawn towards the global one.

Li, Hu, Beirami and Smith, "Ditto: fair and robust federated learning through personalization", ICML 2021,
Eq. 2 and Algorithm 1. After its local epochs a participant trains its personal model v for as many epochs
on F(v) + lambda / 2 ||v - w||^2, where w is the global model that it received; v starts as the client's
own first model. Only shared parameters are drawn: what stays at home has no global counterpart. The personal
models never leave their clients, and they are what is evaluated.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import PersonalModel, Vector


class DittoOptions(AlgorithmOptions):
    """Options of Ditto."""

    name: Literal["ditto"] = "ditto"
    attraction: float = Field(0.1, ge=0)
    """The paper's lambda: 0 is local training, large values give the global model."""


class Ditto(PersonalModel, Algorithm):
    """One global model as FedAvg's; the personal gradient gains lambda (v - w)."""

    name: ClassVar[str] = "ditto"
    paper: ClassVar[str] = "Li et al., ICML 2021, Algorithm 1"
    Options: ClassVar[type[AlgorithmOptions]] = DittoOptions
    options: DittoOptions

    def personal_penalty(self, parameters: Vector, received: Vector, gradient: Vector) -> None:
        """Add lambda (v - w)."""
        gradient.add_(parameters - received, alpha=self.options.attraction)
