"""Wake-ups between the ranks of a node: a rank that has sent its part wakes those that wait for it."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mpi4py import MPI

_WAKE_UP = struct.Struct("=q")
"""Number of the sender's call."""

_AGAIN_S = 1e-3
"""Seconds until a wake-up that found a full queue is sent again."""

_CONNECT_S = 1.0
"""Longest time for the first wake-ups, by which ranks learn who reaches whom."""

_MOST_AT_A_TIME = 1000
"""Wake-ups that are taken at a time."""

_MOST_MISSED = 3
"""Calls of a rank that were done without its wake-up, after which nobody waits for one of it any more."""


class WakeUps:
    """Wakes the other ranks of this node, and sleeps until they wake this one.

    A rank that sleeps until a wake-up comes takes no CPU time. To look at a pending call after some
    milliseconds takes 0.1 ms of it, a wake-up 0.01 ms.

    Ranks make the same calls in the same order, so a wake-up says by a number for which call it is. It holds
    nothing else, and no wait ends by it: after a false one a rank looks at its call too early, without the
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
        self._calls_to_repeat: dict[int, int] = {}
        self._missed: Counter[int] = Counter()

    def open(self) -> bytes:
        """Open this rank's socket, an abstract Unix one, and return its address; empty if there are none."""
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
        """Wake every rank of the node once, as all of them do now; return those of which a wake-up has come.

        Parameters
        ----------
        addresses : mapping
            Of the node's sockets by rank.
        """
        if not addresses.get(self._rank):
            return set()
        known = {rank: address for rank, address in addresses.items() if address and rank != self._rank}
        self._addresses, self._ranks = known, {address: rank for rank, address in known.items()}
        self.begin()
        self.wake(list(known))
        until = time.monotonic() + _CONNECT_S
        while self.awaits(list(self._addresses)) or self._calls_to_repeat:
            if time.monotonic() > until:
                break
            self.listen(_AGAIN_S)
        return set(self._last_call_of)

    def keep(self, ranks: Collection[int]) -> None:
        """Wake only these ranks from now on, and wait for no other."""
        self._addresses = {rank: self._addresses[rank] for rank in ranks if rank in self._addresses}
        self._calls_to_repeat = {}

    def begin(self) -> None:
        """Go on to the next call."""
        self._call += 1
        if self._addresses:
            self._take()

    def wake(self, ranks: Sequence[int]) -> None:
        """Wake those of `ranks` that are on this node for the present call."""
        for rank in ranks:
            self._wake(rank, self._call)
        until = time.monotonic() + _AGAIN_S
        while self._calls_to_repeat and time.monotonic() < until:
            os.sched_yield()
            self._repeat()

    def awaits(self, ranks: Sequence[int]) -> bool:
        """Return whether a wake-up of `ranks` for the present call is to come; False if one cannot wake."""
        if not all(rank in self._addresses for rank in ranks):
            return False
        return any(self._last_call_of.get(rank, 0) < self._call for rank in ranks)

    def listen(self, seconds: float) -> bool:
        """Sleep until a rank wakes this one, for so many seconds at most; return whether one has."""
        until = time.monotonic() + seconds
        while not self._take():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._repeat()
            self._poll.poll(1e3 * min(left, _AGAIN_S if self._calls_to_repeat else left))
        return True

    def miss(self, ranks: Sequence[int]) -> None:
        """Note that the present call was done without wake-ups of some of `ranks`."""
        for rank in ranks:
            if self._last_call_of.get(rank, 0) < self._call:
                self._missed[rank] += 1
                if self._missed[rank] == _MOST_MISSED:
                    self._addresses.pop(rank, None)

    def _repeat(self) -> None:
        for rank, call in list(self._calls_to_repeat.items()):
            self._wake(rank, call)

    def _wake(self, rank: int, call: int) -> None:
        self._calls_to_repeat.pop(rank, None)
        address = self._addresses.get(rank)
        if address is None:
            return
        try:
            self._socket.sendto(_WAKE_UP.pack(call), address)
        except (ConnectionRefusedError, FileNotFoundError):
            del self._addresses[rank]  # it has ended, or is out of reach
        except OSError:  # mostly a full queue
            self._calls_to_repeat[rank] = call

    def _take(self) -> bool:
        """Take the wake-ups that have come; return whether there were some."""
        found = False
        for _ in range(_MOST_AT_A_TIME):
            if not self._poll.poll(0):
                break
            message, address = self._socket.recvfrom(_WAKE_UP.size)
            rank = self._ranks.get(address)
            if rank is not None and len(message) == _WAKE_UP.size:
                (call,) = _WAKE_UP.unpack(message)
                self._last_call_of[rank] = max(call, self._last_call_of.get(rank, 0))
                found = True
        return found


def of_node(node: MPI.Comm, rank: int) -> WakeUps:
    """Return the wake-ups between a node's ranks that reach each other (a collective call).

    Parameters
    ----------
    node : communicator
        Of the ranks of this node.
    rank : int
        Number of this rank in the run.
    """
    wake_ups = WakeUps(rank)
    if node.size == 1:
        return wake_ups
    addresses = dict(node.allgather((rank, wake_ups.open())))
    heard = wake_ups.connect(addresses)
    found = dict(node.allgather((rank, heard)))
    wake_ups.keep([other for other in heard if rank in found[other]])
    return wake_ups
