"""FedStar: only the structure channel of a two-channel network is averaged.

Tan, Liu, Long, Jiang, Lu and Zhang, "Federated learning on non-IID graphs via
structural knowledge sharing", AAAI 2023. The structure channel never reads the
features, so clients of any domain can share it; everything else is the client's
own. The released code shares nothing at the start, here the shared channel
starts alike. Without `sharing` the same network is trained by each client alone,
from the same start: the control for what sharing is worth (issue 1 of the
released code asks for it).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Ints
from fedmpi.errors import BadInput
from fedmpi.models.options import ModelOptions


class FedStarOptions(AlgorithmOptions):
    """Options of FedStar."""

    name: Literal["fedstar"] = "fedstar"
    sharing: bool = True
    """Whether the structure channel is averaged; false leaves every client alone after the common start."""


class FedStar(Algorithm):
    """One structure channel for all clients."""

    name = "fedstar"
    paper = "Tan et al., AAAI 2023"
    Options = FedStarOptions
    reads_share = False
    options: FedStarOptions

    def __init__(self, options: AlgorithmOptions) -> None:
        super().__init__(options)
        self.communicates = self.options.sharing  # type: ignore[misc]

    def groups(self, num_clients: int) -> Ints:
        """Return one group, or one per client without sharing."""
        if self.options.sharing:
            return super().groups(num_clients)
        return np.arange(num_clients, dtype=np.int64)

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: only the structure channel does."""
        return name.startswith("structure.")

    def validate(self, model: ModelOptions) -> None:
        """Refuse other networks."""
        if model.name != "fedstar":
            raise BadInput('shares a structure channel: choose model = "fedstar"')
