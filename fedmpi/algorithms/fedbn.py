"""FedBN: FedAvg whose normalisation layers never leave the client.

Li, Jiang, Zhang, Kamp and Dou, "FedBN: federated learning on non-IID features via
local batch normalization", ICLR 2021, Algorithm 1. Scale, shift and running
statistics of every normalisation layer stay at home; all else that the case
shares is averaged as in FedAvg.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.errors import BadInput
from fedmpi.models.options import ModelOptions


class FedBN(Algorithm):
    """One global model but for the clients' own normalisation."""

    name = "fedbn"
    paper = "Li et al., ICLR 2021, Algorithm 1"

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: not if it is a normalisation layer's."""
        own = name.startswith(("norm.", "graph_norm.")) or ".norm." in name or ".norms." in name
        return not own and super().shares(name, share)

    def validate(self, model: ModelOptions) -> None:
        """Refuse a model without normalisation, with which this is FedAvg."""
        if not model.norms:
            choice = 'model.norm, such as "batch"' if hasattr(model, "norm") else 'model = "gin" with a norm'
            raise BadInput(f"keeps normalisation layers at home: choose {choice}")
