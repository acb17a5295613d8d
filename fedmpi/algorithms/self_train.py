"""Self-train: every client alone, after one common start of the shared part.

The baseline of GCFL's tables (there 50 epochs in the one-dataset setting, 100
with several datasets, against 200 federated rounds; FedStar uses 200). One
round is ``local_epochs`` epochs, so ``rounds`` sets their number.
"""

from __future__ import annotations

import numpy as np

from fedmpi.algorithms.base import Algorithm, Ints


class SelfTrain(Algorithm):
    """No communication after the start; each client is a group of its own."""

    name = "self-train"
    communicates = False

    def groups(self, num_clients: int) -> Ints:
        """Return one group per client."""
        return np.arange(num_clients, dtype=np.int64)
