"""A phase before the first round, in which clients mend their parts of a graph."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fedmpi.algorithms.capabilities.base import Capability
from fedmpi.models.generator import Generator


class Mends(Capability):
    """Parts of one graph get generated nodes before the first round, for missing neighbours (FedSage+).

    It is for classes of nodes. Every client hides some of its nodes and trains a network to give them back,
    first alone. Then it shows its generated features to all others, gets back how far they are from the
    others' nodes, and trains on. At last it adds generated nodes to its whole part. All rounds train and
    evaluate on mended parts; examples are what they were. The generator never leaves its client, and is not
    kept.
    """

    runs_on: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})

    @abstractmethod
    def generator(self) -> Generator:
        """Return the network that each client trains, and how."""
