"""Graphs that the number of clients decides: ring, torus, star, complete."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.topologies.base import Ints, TopologyOptions, both_ways


class RingOptions(TopologyOptions):
    """Client i averages with i - 1 and i + 1."""

    paper: ClassVar[str] = "Lian et al., NeurIPS 2017"
    name: Literal["ring"] = "ring"

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        clients = np.arange(num_clients)
        return both_ways(np.stack([clients, (clients + 1) % num_clients], axis=1))


class TorusOptions(TopologyOptions):
    """A grid of a times b clients, as square as it can be, whose rows and columns are rings."""

    name: Literal["torus"] = "torus"

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        rows = next(each for each in range(math.isqrt(num_clients), 0, -1) if num_clients % each == 0)
        if rows == 1:
            raise BadInput(f'{num_clients} clients make no grid of several rows: use "ring"')
        grid = np.arange(num_clients).reshape(rows, -1)
        rolled = [np.stack([grid, np.roll(grid, 1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
        return both_ways(np.concatenate(rolled))


class StarOptions(TopologyOptions):
    """All average with client 0."""

    name: Literal["star"] = "star"

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        others = np.arange(1, num_clients)
        return both_ways(np.stack([np.zeros_like(others), others], axis=1))


class CompleteOptions(TopologyOptions):
    """All average with all: the mean over clients of equal weight."""

    name: Literal["complete"] = "complete"

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        return both_ways(np.stack(np.triu_indices(num_clients, 1), axis=1))
