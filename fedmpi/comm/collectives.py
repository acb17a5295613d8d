"""The collectives of a round on flat buffers, and how ranks wait in them; counted: calls, bytes, seconds."""

from __future__ import annotations

import os
import time
import zlib
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from fedmpi.comm import alarm
from fedmpi.comm.audit import Listener
from fedmpi.errors import RankFailed

NAMES = ("Bcast", "Gatherv", "Reduce", "Scatterv", "Ibarrier", "Alltoallv")
"""Order of the collectives in every count."""

_SHORTEST_NAP_S = 50e-6
"""Shortest sleep between two looks at a pending call; a look and its sleep cost about as much CPU time."""

_DUE_NAP_S = 1e-3
"""Longest sleep when a call is due: a large message moves over a network in looks only. Shortest where
nobody waits for the one that sleeps."""

_LONGEST_NAP_S = 0.1
"""Longest sleep between two looks at a call that is not due yet."""

_BRIEF_S = 1e-3
"""A wait that is expected to be shorter begins without sleep, for as long, on a core of the rank's own."""

_TESTS = 3
"""Tests of a request in one look: a call of several messages takes one for each."""

_PIECE_BYTES = 1 << 16
"""Part of a large message for which a look takes one more test, of at most `_MOST_TESTS`."""

_MOST_TESTS = 1000

SEAL = 8
"""Bytes behind each part that is gathered: a checksum of it."""

_REMEMBERED = 4
"""Earlier waits at the same place whose shortest is expected again."""

_PATIENCE_S = 0.25
"""Seconds that rank 0 waits before it tests whether a rank has sent a reason to end the job."""

Array = npt.NDArray[Any]
Buffer = TypeVar("Buffer", bound=Any)


class Collectives:
    """Upper-case MPI calls on contiguous NumPy arrays, root 0.

    On ranks other than 0, `bcast`, `reduce` and `scatterv` also take torch tensors on devices MPI supports.

    The payload of a call on a rank is the size of the buffer that this rank hands
    to the collective or gets from it: Bcast, the message; Gatherv and Reduce, what
    the rank contributes, with the `SEAL` of a gathered part; Scatterv, what it receives; Ibarrier, nothing.

    A call with a `place` is waited for asleep: who waits leaves the core to those that compute. How long the
    last calls at that place took says when to look. Others are blocking MPI calls; where ranks are `crowded`
    they are waited for asleep, too. ``blocking`` calls block there as well: not every MPI that knows GPUs
    takes their memory without.

    The ``kind`` of a call, its `place` by default, names its messages in an audit. A listener on every rank
    makes all calls audited; rank 0's is told of what reaches rank 0 and of what it sends. Of a reduction an
    MPI may bring each rank's part to rank 0, so the audit does so: it gathers the parts once more, uncounted.

    Parameters
    ----------
    comm : communicator
    crowded : bool
        Whether ranks have to share cores anywhere; the same on all.
    """

    def __init__(self, comm: MPI.Intracomm, crowded: bool = False) -> None:
        self._comm, self.crowded = comm, crowded
        self.calls = np.zeros(len(NAMES), np.int64)
        self.payload_bytes = np.zeros(len(NAMES), np.int64)
        self.seconds = np.zeros(len(NAMES))
        self.listener: Listener | None = None
        self._waits: dict[str, deque[float]] = {}

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0."""
        return self._comm.rank == 0

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self._comm.rank

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

    def note(
        self, kind: str, data: Any, sender: int = 0, *, receiver: int | None = 0, client: int | None = None
    ) -> None:
        """Tell an audit of a message to rank 0 or from it; elsewhere, and without an audit, nothing happens.

        Parameters
        ----------
        kind : str
        data : array or bytes
        sender : int, optional
            Rank.
        receiver : int or None, optional
            Rank; None: all.
        client : int, optional
            Whose message it is, where it is one client's: public for those that hand it over on rank 0.
        """
        if self.listener is not None and self.is_root:
            content = data if isinstance(data, bytes) else np.asarray(data).tobytes()
            self.listener.message(kind, sender, content, receiver=receiver, client=client)

    def bcast(
        self, buffer: Buffer, place: str = "", *, blocking: bool = False, kind: str = "broadcast"
    ) -> Buffer:
        """Send rank 0's buffer to all, in place; every rank brings an array of the same size."""
        self.count("Bcast", buffer.nbytes)
        self.note(place or kind, buffer, receiver=None)
        start = time.perf_counter()
        if (place or self.crowded) and not blocking:
            self._sleep(self._comm.Ibcast(buffer, root=0), place)
        else:
            self._comm.Bcast(buffer, root=0)
        self._time("Bcast", start)
        return buffer

    def gatherv(
        self,
        part: Array,
        counts: Sequence[int],
        place: str = "",
        *,
        patient: bool = False,
        counted: bool = False,
        kind: str = "gather",
    ) -> list[Array] | None:
        """Gather 1-d parts at rank 0: one array per rank; None elsewhere.

        Each part carries a checksum: when a rank dies while it sends, an MPI may complete the call on rank 0
        and leave what was in the buffer before.

        The other ranks go on as soon as their part has left; a large part leaves when rank 0 takes it.

        Parameters
        ----------
        part : array [counts[rank]]
            This rank's part.
        counts : sequence of int
            Elements of each rank's part.
        place : str, optional
            Point of the round; a call with one is waited for asleep.
        patient : bool, optional
            Nobody waits for rank 0 after the call, so that it tests seldom.
        counted : bool, optional
            The caller has counted this call already.
        kind : str, optional

        Raises
        ------
        RankFailed
            On rank 0: a part is not what its rank sent.
        """
        part = sealed(part)
        if not counted:
            self.count("Gatherv", part.nbytes)
        start = time.perf_counter()
        counts = [count + SEAL // part.itemsize for count in counts]
        whole = np.empty(sum(counts), part.dtype) if self.is_root else None
        # A predefined type: `mpi4py.util.dtlib` would make a new one that nobody frees.
        element = MPI.Datatype.fromcode(part.dtype.char)
        target = [whole, (counts, _displacements(counts)), element] if self.is_root else None
        source = [part, len(part), element]
        if place or self.crowded:
            size = part.nbytes if whole is None else whole.nbytes
            least = _DUE_NAP_S if patient and self.is_root else _SHORTEST_NAP_S
            self._sleep(self._comm.Igatherv(source, target, root=0), place, size, least)
        else:
            self._comm.Gatherv(source, target, root=0)
        self._time("Gatherv", start)
        return None if whole is None else self._opened(whole, counts, place or kind)

    def _opened(self, whole: Array, counts: Sequence[int], kind: str) -> list[Array]:
        """Return the parts that were gathered, without their seals."""
        parts = np.split(whole, np.cumsum(counts)[:-1])
        pieces = [unsealed(each, rank) for rank, each in enumerate(parts)]
        for rank, piece in enumerate(pieces):
            self.note(kind, piece, rank)
        return pieces

    def scatterv(
        self,
        whole: Array | None,
        counts: Sequence[int],
        dtype: npt.DTypeLike,
        part: Any = None,
        *,
        blocking: bool = False,
        kind: str = "scatter",
    ) -> Any:
        """Scatter rank 0's 1-d array over the ranks, in rank order.

        Parameters
        ----------
        whole : array [sum(counts)] or None
            Read on rank 0 only.
        counts : sequence of int
            Elements for each rank.
        dtype : dtype
        part : array or torch tensor [counts[rank]], optional
            Receives this rank's elements; a new array by default.
        blocking : bool, optional
            Call MPI's blocking function even where ranks are `crowded`.
        kind : str, optional

        Returns
        -------
        array, or `part`
        """
        part = np.empty(counts[self._comm.rank], dtype) if part is None else part
        self.count("Scatterv", part.nbytes)
        start = time.perf_counter()
        if whole is not None:
            for rank, piece in enumerate(np.split(whole, np.cumsum(counts)[:-1])):
                self.note(kind, piece, receiver=rank)
        element = MPI.Datatype.fromcode(np.dtype(dtype).char)
        source = [whole, (counts, _displacements(counts)), element] if self.is_root else None
        target = [part, len(part), element]
        if self.crowded and not blocking:
            self._sleep(self._comm.Iscatterv(source, target, root=0))
        else:
            self._comm.Scatterv(source, target, root=0)
        self._time("Scatterv", start)
        return part

    def reduce(self, part: Any, *, blocking: bool = False, kind: str = "sum") -> Array | None:
        """Sum arrays of one shape over ranks at rank 0; None elsewhere.

        An MPI may add in another order in blocking calls than in others, and floats show it: theirs is the
        same call wherever a run is continued.
        """
        self.count("Reduce", part.nbytes)
        if self.listener is not None:
            parts = np.empty((self.size, *part.shape), part.dtype) if self.is_root else None
            self._comm.Gather(part, parts, root=0)
            for rank, piece in enumerate(() if parts is None else parts):
                self.note(kind, piece, rank)
        start = time.perf_counter()
        total = np.empty_like(part) if self.is_root else None
        if blocking or not (self.crowded or part.dtype.kind == "f"):
            self._comm.Reduce(part, total, op=MPI.SUM, root=0)
        elif self.crowded:
            self._sleep(self._comm.Ireduce(part, total, op=MPI.SUM, root=0))
        else:
            self._comm.Ireduce(part, total, op=MPI.SUM, root=0).Wait()
        self._time("Reduce", start)
        return total

    def alltoallv(self, parts: Sequence[Array], counts: Sequence[int], kind: str = "exchange") -> list[Array]:
        """Send a part of bytes to each rank; return the part from each.

        Parameters
        ----------
        parts : sequence [ranks] of uint8 arrays
        counts : sequence [ranks] of int
            Bytes that come from each rank.
        kind : str, optional
        """
        sizes = [len(part) for part in parts]
        self.count("Alltoallv", sum(sizes) - sizes[self._comm.rank])
        start = time.perf_counter()
        whole, element = np.empty(sum(counts), np.uint8), MPI.Datatype.fromcode("B")
        source = [np.concatenate(parts), (sizes, _displacements(sizes)), element]
        target = [whole, (list(counts), _displacements(counts)), element]
        if self.crowded:
            self._sleep(self._comm.Ialltoallv(source, target))
        else:
            self._comm.Alltoallv(source, target)
        self._time("Alltoallv", start)
        received = np.split(whole, np.cumsum(counts)[:-1])
        for rank, piece in enumerate(received):
            self.note(kind, piece, rank)
        for rank, piece in enumerate(parts):
            if rank != self.rank:
                self.note(kind, piece, receiver=rank)
        return received

    def wait_for_all(self, place: str = "") -> float:
        """Sleep until every rank is here; return the seconds waited."""
        self.count("Ibarrier", 0)
        start = time.perf_counter()
        self._sleep(self._comm.Ibarrier(), place)
        self._time("Ibarrier", start)
        return time.perf_counter() - start

    def _sleep(
        self, request: MPI.Request, place: str = "", size: int = 0, least: float = _SHORTEST_NAP_S
    ) -> None:
        """Sleep until a call of so many bytes is done, at least so long at a time.

        Where ranks are not `crowded`, a wait that is expected to be short begins with yields: who yields
        all the time still gets its share of a core.

        Measured: a rank that slept through a wait of 250 ms used 11 ms of CPU time with a look every 0.1 ms
        around its end, which two workers on two cores had to do without.
        """
        start = time.perf_counter()
        earlier = self._waits.setdefault(place, deque(maxlen=_REMEMBERED if place else 0))
        expected = min(earlier, default=0.0)
        asleep, tests = 0.0, min(_TESTS + size // _PIECE_BYTES, _MOST_TESTS)
        while not any(request.Test() for _ in range(tests)):
            elapsed = time.perf_counter() - start
            if elapsed > _PATIENCE_S and self.is_root:
                alarm.check(self._comm)
            brief = max(elapsed, expected) <= _BRIEF_S and least < _DUE_NAP_S
            asleep = 0.0 if brief and not self.crowded else nap(elapsed, expected, least)
            if asleep:
                time.sleep(asleep)
            else:
                os.sched_yield()
        waited = time.perf_counter() - start
        # It ended somewhere in the last nap. Were naps remembered in full, ranks that once waited long
        # for one that stood still would make each other wait for ever.
        earlier.append(waited - asleep / 2)


def sealed(part: Array) -> Array:
    """Return a 1-d array with its checksum behind it."""
    tail = SEAL // part.itemsize
    whole = np.empty(len(part) + tail, part.dtype)
    whole[:-tail] = part
    whole[-tail:].view(np.uint8)[:] = _seal(whole[:-tail])
    return whole


def unsealed(whole: Array, rank: int) -> Array:
    """Return what `sealed` was given on a rank.

    Raises
    ------
    RankFailed
        It is not that.
    """
    tail = SEAL // whole.itemsize
    part = whole[:-tail]
    if not np.array_equal(whole[-tail:].view(np.uint8), _seal(part)):
        raise RankFailed(
            f"the message of rank {rank} arrived damaged: the rank has died, or its network has failed"
        )
    return part


def _seal(part: Array) -> Array:
    return np.array([zlib.crc32(part.data) | 1 << 32], np.uint64).view(np.uint8)


def nap(elapsed: float, expected: float, least: float = _SHORTEST_NAP_S) -> float:
    """Return the seconds until the next look at a call that is expected to take so many.

    Half of what is left until shortly before it is due; then few; where it is late, more again,
    at most a hundredth of the wait; `least` at the least.
    """
    shortest = max(least, min(expected / 256, _DUE_NAP_S))
    left = 0.96 * expected - elapsed
    if left > 2 * shortest:
        return min(left / 2, _LONGEST_NAP_S)
    late = elapsed - 2 * expected
    return min(max(late / 8, shortest), max(10 * least, elapsed / 100))


def _displacements(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:rank]) for rank in range(len(counts))]
