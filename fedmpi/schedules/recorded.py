"""Steps in an order that was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.schedules.base import Ints, Step


@dataclass(frozen=True)
class Order:
    """Who was used in which step, as it came about on the real clock.

    Attributes
    ----------
    staleness : int [steps, clients]
        Steps between the model that a client's update starts from and the one that it changes; -1: none.
    seconds : float64 [steps]
        Of each step.
    digests : uint64 [steps]
        Of the models that the server made; empty: not known.
    """

    staleness: npt.NDArray[np.integer]
    seconds: npt.NDArray[np.float64]
    digests: npt.NDArray[np.uint64]

    def steps(self, first: int) -> Iterator[Step]:
        """Yield the steps from the first (0-based) on."""
        nobody = np.zeros(self.staleness.shape[1], np.int64)
        for number in range(first, len(self.staleness)):
            row = self.staleness[number].astype(np.int64)
            streams = np.where(row >= 0, number - row, number)
            used, staleness = np.flatnonzero(row >= 0), np.maximum(row, 0)
            yield Step(used, staleness, self._held(number), 0, 0, nobody, nobody.astype(float), streams)

    def _held(self, number: int) -> Ints:
        """Return the clients that start from the model before a step and are used later."""
        later = self.staleness[number + 1 :]
        ahead = np.arange(1, len(later) + 1)[:, None]
        return np.flatnonzero((later == ahead).any(axis=0))
