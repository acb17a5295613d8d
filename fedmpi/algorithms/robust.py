"""Base of robust means: the server takes something else than the mean of the updates of each group."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fedmpi.algorithms.base import Algorithm, Floats, Rows
from fedmpi.algorithms.program import Conversation, Server


class Robust(Algorithm):
    """Groups whose models move by an aggregate of their participants' updates; all count alike."""

    decides = frozenset({"moves"})
    asks = frozenset({"rows"})

    def decide(self, server: Server) -> Conversation:
        """Move each group by its aggregate."""
        rows = yield server.rows(server.participants)
        for members in server.groups():
            mine = rows[np.searchsorted(server.participants, members)]
            server.move(members, self.aggregate(mine, server.trained))

    @abstractmethod
    def aggregate(self, rows: Rows, trained: int) -> Floats:
        """Return what a group's model moves by, float64 [shared].

        Parameters
        ----------
        rows : float32 [k, shared]
            Updates of the group's participants, ascending by client.
        trained : int
            Parameters among the elements, which come first.
        """
