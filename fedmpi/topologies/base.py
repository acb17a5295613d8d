"""What a topology says of clients: whom each of them hears."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fedmpi.config.options import Options

Ints = npt.NDArray[np.int64]


class TopologyOptions(Options):
    """Base of the options of all graphs of clients.

    Attributes
    ----------
    gossips : bool
        Whether clients average with each other, without a server.
    directed : bool
        Whether a client may hear one that does not hear it; then all have the same degree.
    """

    step: float = Field(0.05, gt=0, le=1)
    """Consensus step gamma of compressed gossip (CHOCO-SGD); read with `compression` only."""

    gossips: ClassVar[bool] = True
    directed: ClassVar[bool] = False

    def period(self, num_clients: int) -> int:
        """Return after how many rounds the links come again; 1: they are the same in all rounds."""
        return 1

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """Return who hears whom, int64 [links, 2]: receiver and sender; each pair at most once.

        Parameters
        ----------
        num_clients : int
            At least 2.
        turn : int
            Round (0-based) modulo `period`.
        seed : int
            The run's.

        Raises
        ------
        BadInput
            There is no such graph of so many clients; the message says what to use.
        """
        raise NotImplementedError


def both_ways(edges: npt.ArrayLike) -> Ints:
    """Return the links of undirected edges, int [edges, 2]: each once, without loops."""
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    links = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    found: Ints = links[links[:, 0] != links[:, 1]]
    return found
