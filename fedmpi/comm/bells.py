"""A bell for each rank of a node: a rank that has sent its part wakes the ranks that wait for it."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mpi4py import MPI

_RING = struct.Struct("=q")
"""Number of the sender's call."""

_AGAIN_S = 1e-3
"""Seconds until a ring that found a full queue is sent again."""

_CONNECT_S = 1.0
"""Longest time for the first rings, by which ranks learn who reaches whom."""

_MOST_RINGS = 1000
"""Rings that are taken at a time."""

_MOST_MISSED = 3
"""Calls of a rank that were done without its ring, after which nobody waits for its rings any more."""


class Bells:
    """Rings the other ranks of this node, and sleeps until they ring.

    A rank asleep until a bell rings takes no CPU time. To wake after some milliseconds and look at a pending
    call takes 0.1 ms of it, a ring 0.01 ms.

    Ranks make the same calls in the same order, so a ring says by a number for which call it is. It holds
    nothing else, and no wait ends by it: after a false ring a rank looks at its call too early, without the
    right one 0.1 s too late at most.

    Parameters
    ----------
    rank : int
        Number of this rank.
    """

    def __init__(self, rank: int) -> None:
        self._rank, self._call = rank, 0
        self._addresses: dict[int, bytes] = {}
        self._ranks: dict[bytes, int] = {}
        self._last_call_of: dict[int, int] = {}
        self._calls_to_ring_again: dict[int, int] = {}
        self._missed: Counter[int] = Counter()

    def open(self) -> bytes:
        """Open this rank's bell and return its address, an abstract Unix socket; empty if there are none."""
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.bind("")  # the system chooses a name
        except OSError:
            return b""
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        return bytes(self._socket.getsockname())

    def connect(self, addresses: Mapping[int, bytes]) -> set[int]:
        """Ring every rank of the node once, as all of them do now; return those whose ring has come.

        Parameters
        ----------
        addresses : mapping
            Of the node's bells by rank.
        """
        if not addresses.get(self._rank):
            return set()
        known = {rank: address for rank, address in addresses.items() if address and rank != self._rank}
        self._addresses, self._ranks = known, {address: rank for rank, address in known.items()}
        self.begin()
        self.ring(list(known))
        until = time.monotonic() + _CONNECT_S
        while self.awaits_ring(list(self._addresses)) or self._calls_to_ring_again:
            if time.monotonic() > until:
                break
            self.listen(_AGAIN_S)
        return set(self._last_call_of)

    def keep(self, ranks: Collection[int]) -> None:
        """Ring only these ranks from now on, and wait for rings of no other."""
        self._addresses = {rank: self._addresses[rank] for rank in ranks if rank in self._addresses}
        self._calls_to_ring_again = {}

    def begin(self) -> None:
        """Go on to the next call."""
        self._call += 1
        if self._addresses:
            self._take()

    def ring(self, ranks: Sequence[int]) -> None:
        """Ring those of `ranks` that are on this node for the present call."""
        for rank in ranks:
            self._ring(rank, self._call)
        until = time.monotonic() + _AGAIN_S
        while self._calls_to_ring_again and time.monotonic() < until:
            os.sched_yield()
            self._ring_again()

    def awaits_ring(self, ranks: Sequence[int]) -> bool:
        """Return whether a ring of `ranks` for the present call is to come; False if one cannot ring."""
        if not all(rank in self._addresses for rank in ranks):
            return False
        return any(self._last_call_of.get(rank, 0) < self._call for rank in ranks)

    def listen(self, seconds: float) -> bool:
        """Sleep until a rank rings, for so many seconds at most; return whether one has."""
        until = time.monotonic() + seconds
        while not self._take():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._ring_again()
            self._poll.poll(1e3 * min(left, _AGAIN_S if self._calls_to_ring_again else left))
        return True

    def miss(self, ranks: Sequence[int]) -> None:
        """Note that the present call was done without the rings of some of `ranks`."""
        for rank in ranks:
            if self._last_call_of.get(rank, 0) < self._call:
                self._missed[rank] += 1
                if self._missed[rank] == _MOST_MISSED:
                    self._addresses.pop(rank, None)

    def _ring_again(self) -> None:
        for rank, call in list(self._calls_to_ring_again.items()):
            self._ring(rank, call)

    def _ring(self, rank: int, call: int) -> None:
        self._calls_to_ring_again.pop(rank, None)
        address = self._addresses.get(rank)
        if address is None:
            return
        try:
            self._socket.sendto(_RING.pack(call), address)
        except (ConnectionRefusedError, FileNotFoundError):
            del self._addresses[rank]  # it has ended, or is out of reach
        except OSError:  # mostly a full queue
            self._calls_to_ring_again[rank] = call

    def _take(self) -> bool:
        """Take the rings that have come; return whether there were some."""
        found = False
        for _ in range(_MOST_RINGS):
            if not self._poll.poll(0):
                break
            message, address = self._socket.recvfrom(_RING.size)
            rank = self._ranks.get(address)
            if rank is not None and len(message) == _RING.size:
                (call,) = _RING.unpack(message)
                self._last_call_of[rank] = max(call, self._last_call_of.get(rank, 0))
                found = True
        return found


def of_node(node: MPI.Comm, rank: int) -> Bells:
    """Return the bells of a node's ranks that reach each other (a collective call).

    Parameters
    ----------
    node : communicator
        Of the ranks of this node.
    rank : int
        Number of this rank in the run.
    """
    bells = Bells(rank)
    if node.size == 1:
        return bells
    addresses = dict(node.allgather((rank, bells.open())))
    heard = bells.connect(addresses)
    found = dict(node.allgather((rank, heard)))
    bells.keep([other for other in heard if rank in found[other]])
    return bells
