"""Graphs of neighbours at distances 1, 2, 4, ... (Ying et al., NeurIPS 2021)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from fedmpi.topologies.base import Ints, TopologyOptions


class ExponentialOptions(TopologyOptions):
    """Client i hears i + 1, i + 2, i + 4, ..., modulo the number of clients (static; Eq. 5)."""

    paper: ClassVar[str] = "Ying et al., NeurIPS 2021"
    name: Literal["exponential"] = "exponential"
    directed: ClassVar[bool] = True

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        every = [_hop(num_clients, place) for place in range(_hops(num_clients))]
        return np.concatenate(every)


class OnePeerOptions(TopologyOptions):
    """Client i hears one of them a round: i + 1, then i + 2, i + 4, ..., and again (Eq. 7)."""

    paper: ClassVar[str] = "Ying et al., NeurIPS 2021"
    name: Literal["one-peer"] = "one-peer"
    directed: ClassVar[bool] = True

    def period(self, num_clients: int) -> int:
        """See `TopologyOptions`; of a power of two clients all have the mean after so many rounds."""
        return _hops(num_clients)

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        return _hop(num_clients, turn)


def _hops(num_clients: int) -> int:
    """Return the base-2 logarithm, rounded up."""
    return (num_clients - 1).bit_length()


def _hop(num_clients: int, place: int) -> Ints:
    clients = np.arange(num_clients, dtype=np.int64)
    return np.stack([clients, (clients + 2**place) % num_clients], axis=1)
