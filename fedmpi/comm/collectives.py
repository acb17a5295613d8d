"""The collectives of a round on flat buffers; counted: calls, bytes, seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from fedmpi.comm import alarm
from fedmpi.comm.seals import SEAL, sealed, unsealed
from fedmpi.comm.waiting import Partners, Waits
from fedmpi.comm.wake_ups import WakeUps

NAMES = ("Bcast", "Gatherv", "Reduce", "Scatterv", "Ibarrier", "Alltoallv", "Neighbor_alltoallv")
"""Order of the collectives in every count."""

Way = Literal["from root", "to root", "to all"]
"""Where the messages of a call go."""


class Transport(Protocol):
    """Sums over ranks without MPI: see `fedmpi.comm.transports`."""

    def reduce(self, part: Any) -> Array | None:
        """Return the sum of all ranks' parts at rank 0; None elsewhere."""

    def close(self) -> None:
        """Leave the other ranks."""


Listener = Callable[..., None]
"""Is told of each message that reaches rank 0, and of each that it sends: see `fedmpi.store.transcript`."""

Array = npt.NDArray[Any]
Buffer = TypeVar("Buffer", bound=Any)


class Collectives:
    """Upper-case MPI calls on contiguous NumPy arrays, root 0.

    On ranks other than 0, `bcast`, `reduce` and `scatterv` also take torch tensors on devices MPI supports.

    The payload of a call on a rank is the size of the buffer that this rank hands
    to the collective or gets from it: Bcast, the message; Gatherv and Reduce, what
    the rank contributes, with the `SEAL` of a gathered part; Scatterv, what it receives; Ibarrier, nothing.

    A call with a `place` is waited for asleep: a rank that waits leaves the core to those that compute. The
    wake-ups of the node say when to look; for other nodes it is how long the last calls at that place took.
    Calls without one are blocking MPI calls; where ranks are `crowded` they are waited for asleep, too.
    ``blocking`` calls block there as well: not every MPI that knows GPUs takes their memory without.

    The ``kind`` of a call, its `place` by default, names its messages in an audit. A listener on every rank
    makes all calls audited; rank 0's is told of what reaches rank 0 and of what it sends. Of a reduction an
    MPI may bring each rank's part to rank 0, so the audit does so: it gathers the parts once more, uncounted.

    Parameters
    ----------
    comm : communicator
    crowded : bool
        Whether ranks have to share cores anywhere; the same on all.
    wake_ups : WakeUps, optional
        Of this node's ranks; by default nobody wakes another.

    Attributes
    ----------
    transport : Transport or None
        Sums over ranks in MPI's place; counted as MPI's.
    graphs : dict
        Communicators of graphs of ranks by their links, which `Neighbours` makes and frees.
    """

    def __init__(self, comm: MPI.Intracomm, crowded: bool = False, wake_ups: WakeUps | None = None) -> None:
        self._comm, self.crowded = comm, crowded
        self.calls = np.zeros(len(NAMES), np.int64)
        self.payload_bytes = np.zeros(len(NAMES), np.int64)
        self.seconds = np.zeros(len(NAMES))
        self.listener: Listener | None = None
        self.transport: Transport | None = None
        self.graphs: dict[frozenset[tuple[int, int]], MPI.Distgraphcomm] = {}
        self._waits = Waits(wake_ups)
        self._partners = _partners(comm.rank, comm.size)

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
            self.listener(kind, sender, content, receiver=receiver, client=client)

    def bcast(
        self, buffer: Buffer, place: str = "", *, blocking: bool = False, kind: str = "broadcast"
    ) -> Buffer:
        """Send rank 0's buffer to all, in place; every rank brings an array of the same size."""
        self.count("Bcast", buffer.nbytes)
        self.note(place or kind, buffer, receiver=None)
        start = time.perf_counter()
        if (place or self.crowded) and not blocking:
            self._sleep(self._comm.Ibcast(buffer, root=0), "from root", place)
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
            request = self._comm.Igatherv(source, target, root=0)
            self._sleep(request, "to root", place, size, patient=patient and self.is_root)
        else:
            self._comm.Gatherv(source, target, root=0)
        self._time("Gatherv", start)
        return None if whole is None else self._opened(whole, counts, place or kind)

    def _opened(self, whole: Array, counts: Sequence[int], kind: str) -> list[Array]:
        """Return the parts that were gathered, without their seals."""
        ends = accumulate(counts)
        pieces = [
            unsealed(whole[end - count : end], rank)
            for rank, (count, end) in enumerate(zip(counts, ends, strict=True))
        ]
        for rank, piece in enumerate(pieces):
            self.note(kind, piece, rank)
        return pieces

    def scatterv(
        self,
        whole: Array | None,
        counts: Sequence[int],
        dtype: npt.DTypeLike,
        part: Any = None,
        place: str = "",
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
        place : str, optional
            Point of the round; a call with one is waited for asleep.
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
                self.note(place or kind, piece, receiver=rank)
        element = MPI.Datatype.fromcode(np.dtype(dtype).char)
        source = [whole, (counts, _displacements(counts)), element] if self.is_root else None
        target = [part, len(part), element]
        if (place or self.crowded) and not blocking:
            self._sleep(self._comm.Iscatterv(source, target, root=0), "from root", place, part.nbytes)
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
        total = self._sum(part, blocking) if self.transport is None else self.transport.reduce(part)
        self._time("Reduce", start)
        return total

    def _sum(self, part: Any, blocking: bool) -> Array | None:
        total = np.empty_like(part) if self.is_root else None
        if blocking or not (self.crowded or part.dtype.kind == "f"):
            self._comm.Reduce(part, total, op=MPI.SUM, root=0)
        elif self.crowded:
            self._sleep(self._comm.Ireduce(part, total, op=MPI.SUM, root=0), "to root")
        else:
            self._comm.Ireduce(part, total, op=MPI.SUM, root=0).Wait()
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
            self._sleep(self._comm.Ialltoallv(source, target), "to all")
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

    def graph(self, senders: Sequence[int], receivers: Sequence[int]) -> MPI.Distgraphcomm:
        """Return a communicator in which this rank gets from `senders` and sends to `receivers`."""
        return self._comm.Create_dist_graph_adjacent(senders, receivers)

    def neighbor_alltoallv(
        self, graph: MPI.Distgraphcomm, source: list[Any], target: list[Any], partners: Partners
    ) -> None:
        """Send the parts of `source` to neighbours, and fill `target`: see `Neighbours.exchange`."""
        self.count("Neighbor_alltoallv", source[0].nbytes)
        start = time.perf_counter()
        if self.crowded:
            self._sleep(graph.Ineighbor_alltoallv(source, target), partners)
        else:
            graph.Neighbor_alltoallv(source, target)
        self._time("Neighbor_alltoallv", start)

    def wait_for_all(self, place: str = "") -> float:
        """Sleep until every rank is here; return the seconds waited."""
        self.count("Ibarrier", 0)
        start = time.perf_counter()
        self._sleep(self._comm.Ibarrier(), "to all", place)
        self._time("Ibarrier", start)
        return time.perf_counter() - start

    def _sleep(
        self,
        request: MPI.Request,
        way: Way | Partners,
        place: str = "",
        size: int = 0,
        *,
        patient: bool = False,
    ) -> None:
        alarmed = partial(alarm.check, self._comm) if self.is_root else None
        self._waits.sleep(
            request,
            place,
            size,
            partners=self._partners[way] if isinstance(way, str) else way,
            patient=patient,
            crowded=self.crowded,
            alarmed=alarmed,
        )


def alone() -> Collectives:
    """Return the collectives of this rank with itself."""
    return Collectives(MPI.COMM_SELF)


def _partners(rank: int, size: int) -> dict[Way, Partners]:
    """Return the ranks from which this one gets messages, and to which it sends some, by a call's way."""
    others = [other for other in range(size) if other != rank]
    ways: dict[Way, Partners]
    if rank == 0:
        ways = {"from root": Partners([], others), "to root": Partners(others, [])}
    else:
        ways = {"from root": Partners([0], []), "to root": Partners([], [0])}
    return {**ways, "to all": Partners(others, others)}


def _displacements(counts: Sequence[int]) -> list[int]:
    return [0, *accumulate(counts)][:-1]
