"""FedBN: FedAvg whose normalisation layers never leave the client.

Li, Jiang, Zhang, Kamp and Dou, "FedBN: federated learning on non-IID features via
local batch normalization", ICLR 2021, Algorithm 1. Scale, shift and running
statistics of every normalisation layer stay at home; all else that the case
shares is averaged as in FedAvg.
"""

from __future__ import annotations

from typing import ClassVar

from fedmpi.algorithms.base import Algorithm
from fedmpi.models.options import ModelOptions


class FedBN(Algorithm):
    """One global model but for the clients' own normalisation."""

    name: ClassVar[str] = "fedbn"

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: not if it is a normalisation layer's."""
        own = name.startswith(("norm.", "graph_norm.")) or ".norm." in name
        return not own and super().shares(name, share)

    def objection(self, model: ModelOptions) -> str:
        """Refuse a model without normalisation, with which this is FedAvg, and ``pf``, which is not read."""
        if self.options.pf == "shared":
            return 'keeps all normalisation layers at home: leave pf = "shared" out'
        if model.norms:
            return ""
        choice = 'model.norm, such as "batch"' if hasattr(model, "norm") else 'model = "gin" with a norm'
        return f"keeps normalisation layers at home: choose {choice}"
