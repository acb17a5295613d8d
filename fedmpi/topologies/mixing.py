"""The weights by which clients average with those that they hear."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.topologies.base import Ints, TopologyOptions

_MOST = 2**29
"""A float32 times a whole weight up to it is exact in float64."""

_DIGITS = 9
"""Of a spectral gap: what is behind them depends on the library that computes it."""


@dataclass(frozen=True)
class Mixing:
    """W, by Metropolis and Hastings: W_ij = 1 / (1 + max(d_i, d_j)) where i hears j, and W_ii the rest.

    Doubly stochastic, and symmetric where links go both ways (Xiao and Boyd, Systems and Control Letters
    2004). Weights are whole numbers over one divisor, so that sums are exact: over the least common one, or
    rounded to 29 bits where that has more.

    Attributes
    ----------
    receivers, senders : int64 [links]
        By receiver, then by sender.
    degree : int64 [clients]
        How many each client hears.
    weights : int64 [links]
    divisor : int
    """

    receivers: Ints
    senders: Ints
    degree: Ints
    weights: Ints
    divisor: int

    @classmethod
    def of(cls, topology: TopologyOptions, num_clients: int, turn: int, seed: int) -> Mixing:
        """Return the weights of a turn: see `TopologyOptions.links`, whose errors it has."""
        links = topology.links(num_clients, turn, seed)
        receivers, senders = links[np.lexsort((links[:, 1], links[:, 0]))].T
        degree = np.bincount(receivers, minlength=num_clients)
        shares = 1 + np.maximum(degree[receivers], degree[senders])
        divisor = math.lcm(*np.unique(shares).tolist())
        if divisor >= _MOST:
            divisor = _MOST
        weights = np.rint(divisor / shares).astype(np.int64)
        return cls(receivers, senders, degree, weights, divisor)

    def row(self, client: int) -> tuple[Ints, Ints]:
        """Return whom a client hears, ascending, and with which weights."""
        start, stop = np.searchsorted(self.receivers, (client, client + 1))
        return self.senders[start:stop], self.weights[start:stop]

    def dense(self) -> npt.NDArray[np.float64]:
        """Return W, float64 [clients, clients]."""
        found = np.zeros((len(self.degree), len(self.degree)))
        found[self.receivers, self.senders] = self.weights / self.divisor
        np.fill_diagonal(found, 1.0 - found.sum(axis=1))
        return found

    @cached_property
    def spectral_gap(self) -> float:
        """1 - |lambda_2|, for symmetric and circulant W: 1 less the 2-norm of W - 1/n."""
        beside = self.dense() - 1.0 / len(self.degree)
        return round(1.0 - float(np.linalg.norm(beside, 2)), _DIGITS) + 0.0


def refuse_unfit(topology: TopologyOptions, num_clients: int, seed: int) -> None:
    """Raise BadInput where the clients are no such graph, or where one cannot reach another in a period."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if num_clients < 2:
        raise BadInput('one client has nobody to average with: use "server", or more clients')
    links = [topology.links(num_clients, turn, seed) for turn in range(topology.period(num_clients))]
    receivers, senders = np.concatenate(links).T
    graph = coo_array((np.ones(len(senders)), (receivers, senders)), (num_clients, num_clients))
    parts, part = connected_components(graph)
    if parts > 1:
        alone = int(np.flatnonzero(part != part[0])[0])
        raise BadInput(f"no path joins clients 0 and {alone}: use more edges, or another seed")
