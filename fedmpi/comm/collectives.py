"""The collectives of a round on flat buffers, counted: calls, payload bytes, seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

NAMES = ("Bcast", "Gatherv", "Reduce", "Scatterv", "Ibarrier")
"""Order of the collectives in every count."""

_NAP_S = (50e-6, 500e-6)
"""Shortest and longest sleep between two looks at a pending barrier that is late."""

_LONGEST_BLIND_S = 0.1
"""Longest sleep before the first look."""

_REMEMBERED = 4
"""Earlier waits at the same place whose shortest is expected again."""

Array = npt.NDArray[Any]
Buffer = TypeVar("Buffer", bound=Any)


class Collectives:
    """Upper-case MPI calls on contiguous NumPy arrays, root 0.

    Away from rank 0 `bcast`, `reduce` and `scatterv` take torch tensors too, on any device the MPI knows.

    The payload of a call on a rank is the size of the buffer that this rank hands
    to the collective or gets from it: Bcast, the message; Gatherv and Reduce, what
    the rank contributes; Scatterv, what it receives; Ibarrier, nothing.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.calls = np.zeros(len(NAMES), np.int64)
        self.payload_bytes = np.zeros(len(NAMES), np.int64)
        self.seconds = np.zeros(len(NAMES))
        self._waits: dict[str, deque[float]] = {}

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0."""
        return self._comm.rank == 0

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._comm.size

    def count(self, name: str, payload: int) -> None:
        """Count one call; public so that a message can hold the count of its own sending."""
        self.calls[NAMES.index(name)] += 1
        self.payload_bytes[NAMES.index(name)] += payload

    def _time(self, name: str, start: float) -> None:
        self.seconds[NAMES.index(name)] += time.perf_counter() - start

    def bcast(self, buffer: Buffer) -> Buffer:
        """Send rank 0's buffer to all, in place; every rank brings an array of the same size."""
        self.count("Bcast", buffer.nbytes)
        start = time.perf_counter()
        self._comm.Bcast(buffer, root=0)
        self._time("Bcast", start)
        return buffer

    def gatherv(self, part: Array, counts: Sequence[int], *, counted: bool = False) -> Array | None:
        """Concatenate 1-d parts of `counts[rank]` elements at rank 0, in rank order; None elsewhere.

        ``counted`` says that the caller has counted this call already.
        """
        if not counted:
            self.count("Gatherv", part.nbytes)
        start = time.perf_counter()
        whole = np.empty(sum(counts), part.dtype) if self.is_root else None
        # A predefined type: `mpi4py.util.dtlib` would make a new one that nobody frees.
        kind = MPI.Datatype.fromcode(part.dtype.char)
        target = [whole, (counts, _displacements(counts)), kind] if self.is_root else None
        self._comm.Gatherv([part, len(part), kind], target, root=0)
        self._time("Gatherv", start)
        return whole

    def scatterv(
        self, whole: Array | None, counts: Sequence[int], dtype: npt.DTypeLike, part: Any = None
    ) -> Any:
        """Hand `counts[rank]` elements of rank 0's 1-d array to each rank, in rank order, in `part` if given.

        Returns
        -------
        array, or `part`
        """
        part = np.empty(counts[self._comm.rank], dtype) if part is None else part
        self.count("Scatterv", part.nbytes)
        start = time.perf_counter()
        kind = MPI.Datatype.fromcode(np.dtype(dtype).char)
        source = [whole, (counts, _displacements(counts)), kind] if self.is_root else None
        self._comm.Scatterv(source, [part, len(part), kind], root=0)
        self._time("Scatterv", start)
        return part

    def reduce(self, part: Any) -> Array | None:
        """Sum arrays of one shape over ranks at rank 0; None elsewhere."""
        self.count("Reduce", part.nbytes)
        start = time.perf_counter()
        total = np.empty_like(part) if self.is_root else None
        self._comm.Reduce(part, total, op=MPI.SUM, root=0)
        self._time("Reduce", start)
        return total

    def wait_for_all(self, place: str = "") -> float:
        """Sleep until every rank is here; return the seconds waited.

        A barrier that is looked at between sleeps keeps waiting ranks off the
        cores on which others still compute. The first sleep is nearly as long as the
        waits at the same named `place` of the last rounds; looks are frequent then, and
        rarer again when the barrier is late.
        """
        self.count("Ibarrier", 0)
        start = time.perf_counter()
        request = self._comm.Ibarrier()
        earlier = self._waits.setdefault(place, deque(maxlen=_REMEMBERED if place else 0))
        expected = min(earlier, default=0.0)
        blind = blind_sleep(expected)
        overslept = False
        if not request.Test() and blind:
            time.sleep(blind)
            overslept = request.Test()
        while not overslept and not request.Test():
            time.sleep(nap(time.perf_counter() - start, expected))
        self._time("Ibarrier", start)
        waited = time.perf_counter() - start
        earlier.append(waited / 2 if overslept else waited)
        return waited


def blind_sleep(expected: float) -> float:
    """Return the seconds to sleep before the first look at a barrier that is expected to take so many.

    Never long: ranks that once waited for one that stood still would otherwise make each other wait.
    """
    return min(0.9 * expected - _NAP_S[1], _LONGEST_BLIND_S) if expected > 4 * _NAP_S[1] else 0.0


def nap(elapsed: float, expected: float) -> float:
    """Return the seconds between two looks: few when it is due, at most a hundredth of a long wait."""
    early = 0.9 * expected - elapsed
    late = elapsed - 2 * expected
    return min(max(early / 8, late / 8, _NAP_S[0]), max(_NAP_S[1], elapsed / 100))


def _displacements(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:rank]) for rank in range(len(counts))]
