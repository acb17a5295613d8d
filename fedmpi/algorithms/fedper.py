"""FedPer: the base layers are averaged, the head stays with the client.

Arivazhagan, Aggarwal, Singh and Choudhary, "Federated learning with personalization layers",
arXiv:1912.00818, 2019, Algorithm 1. The personalization layers are those after the pooling of a graph's
nodes, all others are base layers; GraphNorm stays at home with every algorithm. Base layers must have one
shape, so the clients' features must be alike, their classes need not.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.errors import BadInput
from fedmpi.models.options import ModelOptions, NetworkOptions

HEAD = ("post.", "readout.", "last.")
"""Names of the layers after the pooling, of all supervised models."""


class FedPer(Algorithm):
    """One global model but for the clients' own heads."""

    name = "fedper"
    paper = "Arivazhagan et al., arXiv:1912.00818, 2019, Algorithm 1"
    reads_share = False

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: all base layers do, whatever the case's `share`."""
        return not name.startswith(HEAD) and super().shares(name, "all")

    def validate(self, model: ModelOptions) -> None:
        """Refuse an encoder without a head, with which this is FedAvg."""
        if not isinstance(model, NetworkOptions):
            raise BadInput('keeps the head at home: choose a model that has one, such as "gin"')
