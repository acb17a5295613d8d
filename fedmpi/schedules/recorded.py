"""Steps in an order that was recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
    ended : bool
        Whether no step comes behind these.
    cpu_seconds : float
        Of all ranks, while clients trained.
    """

    staleness: npt.NDArray[np.integer]
    seconds: npt.NDArray[np.float64]
    digests: npt.NDArray[np.uint64]
    ended: bool = True
    cpu_seconds: float = 0.0

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.staleness)

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


class Recorder:
    """Takes down the steps of a run by the real clock as they are made, behind those that are known."""

    def __init__(self, known: Order) -> None:
        self._clients = known.staleness.shape[1]
        self._staleness, self._seconds = list(known.staleness), known.seconds.tolist()
        self._digests, self._cpu_seconds = known.digests.tolist(), known.cpu_seconds
        self._start = time.perf_counter()

    @property
    def steps(self) -> int:
        """How many there are: the number of the present model."""
        return len(self._staleness)

    def add(self, versions: Mapping[int, int], digest: np.uint64) -> None:
        """Add the step that was made now.

        Parameters
        ----------
        versions : mapping of int to int
            Model from which the update of each client that was used starts.
        digest : uint64
            Of the new model.
        """
        row, now = np.full(self._clients, -1, np.int32), time.perf_counter()
        for client, version in versions.items():
            row[client] = self.steps - version
        self._staleness.append(row)
        self._seconds.append(now - self._start)
        self._digests.append(int(digest))
        self._start = now

    def order(self, *, ended: bool) -> Order:
        """Return the order so far."""
        staleness = np.reshape(np.array(self._staleness, np.int32), (self.steps, self._clients))
        digests = np.array(self._digests, np.uint64)
        return Order(staleness, np.array(self._seconds), digests, ended, self._cpu_seconds)
