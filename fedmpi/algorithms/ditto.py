"""Ditto: FedAvg, and beside it a personal model per client that is drawn towards the global one.

Li, Hu, Beirami and Smith, "Ditto: fair and robust federated learning through personalization", ICML 2021,
Eq. 2 and Algorithm 1. After its local epochs a participant trains its personal model v for as many epochs
on F(v) + lambda / 2 ||v - w||^2, where w is the global model that it received; v starts as the client's
own first model. Only shared parameters are drawn: what stays at home has no global counterpart. The personal
models never leave their clients, and they are what is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Client, Evaluated, Memory, Size, Tensors


class DittoOptions(AlgorithmOptions):
    """Options of Ditto."""

    name: Literal["ditto"] = "ditto"
    attraction: float = Field(0.1, ge=0)
    """The paper's lambda: 0 is local training, large values give the global model."""


class Ditto(Algorithm):
    """One global model as FedAvg's; the personal gradient gains lambda (v - w)."""

    name = "ditto"
    paper = "Li et al., ICML 2021, Algorithm 1"
    Options = DittoOptions
    options: DittoOptions
    needs_labels = True

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return v."""
        return {"own": Memory("model", start="model", judged=True)}

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return those of v."""
        return {"own": "model"}

    def train(self, client: Client) -> None:
        """Train the client's copy of w, then v for as many epochs."""
        client.run_epochs()
        client.run_epochs(client.memory["own"], moments="own", change=self._drawn)

    def _drawn(self, gradient: Any, own: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add lambda (v - w)."""
        gradient.add_(own - received, alpha=self.options.attraction)

    def evaluated(self, client: Evaluated) -> Any:
        """Return v."""
        return client.memory["own"]

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs of both models."""
        return 2 * local_epochs, 0
