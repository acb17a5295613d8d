"""A bell for each rank of a node: who has sent a message rings for the ranks that wait for it."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence

_RING = struct.Struct("=qq")
"""Rank that rings, and number of its call."""

_AGAIN_S = 1e-3
"""Seconds until a ring that found a full queue is sent again."""

_TEST_S = 1.0
"""Seconds for the first rings, with which ranks find out who can ring for whom."""


class Bells:
    """Rings the other ranks of this node, and sleeps until they ring.

    A rank asleep until a bell rings takes no CPU time. To wake after some milliseconds and look at a pending
    call takes 0.1 ms of it, a ring 0.01 ms.

    Ranks make the same calls in the same order, so a ring says by a number for which call it is. It holds
    nothing else, and no wait ends by it: a ring that is false or lost makes a rank look too early or late.

    Parameters
    ----------
    rank : int
        Number of this rank.

    Attributes
    ----------
    address : bytes
        Of this rank's bell, an abstract Unix socket; empty where the system has none.
    """

    def __init__(self, rank: int) -> None:
        self._rank, self._call = rank, 0
        self._others: dict[int, bytes] = {}
        self._heard: dict[int, int] = {}
        self._unsent: dict[int, int] = {}
        self.address = b""
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.bind("")  # the system chooses a name
            self._socket.setblocking(False)
            self._poll = select.poll()
            self._poll.register(self._socket, select.POLLIN)
            self.address = bytes(self._socket.getsockname())
        except OSError:
            pass

    def connect(self, addresses: Mapping[int, bytes]) -> None:
        """Learn the addresses of this node's ranks, and ring for all as a test, as all do at this time."""
        if self.address:
            self._others = {rank: each for rank, each in addresses.items() if each and rank != self._rank}
        self.begin()
        self.ring(list(self._others))
        until = time.monotonic() + _TEST_S
        while (self.silent(list(self._others)) or self._unsent) and time.monotonic() < until:
            self._send_again()
            self._poll.poll(1e3 * _AGAIN_S)

    def test(self) -> None:
        """Forget the ranks that have not rung, where all have called `connect` before."""
        if self._others:
            self._take()
            self._others = {rank: each for rank, each in self._others.items() if rank in self._heard}
            self._unsent = {}

    def begin(self) -> None:
        """Go on to the next call."""
        self._call += 1

    def ring(self, ranks: Sequence[int]) -> None:
        """Ring for the present call at those of `ranks` that are on this node."""
        for rank in ranks:
            if rank in self._others:
                self._send(rank, self._call)

    def silent(self, ranks: Sequence[int]) -> bool:
        """Return whether a ring for the present call is missing, where all of `ranks` can ring."""
        if not ranks or any(rank not in self._others for rank in ranks):
            return False
        self._take()
        return any(self._heard.get(rank, 0) < self._call for rank in ranks)

    def listen(self, ranks: Sequence[int], seconds: float) -> bool:
        """Sleep until all of `ranks` have rung for the present call, for so many seconds at most.

        Returns whether they have.
        """
        until = time.monotonic() + seconds
        while self.silent(ranks):
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._send_again()
            self._poll.poll(1e3 * min(left, _AGAIN_S if self._unsent else left))
        return True

    def _send_again(self) -> None:
        for rank, call in list(self._unsent.items()):
            self._send(rank, call)

    def _send(self, rank: int, call: int) -> None:
        self._unsent.pop(rank, None)
        try:
            self._socket.sendto(_RING.pack(self._rank, call), self._others[rank])
        except BlockingIOError:
            self._unsent[rank] = call
        except OSError:
            del self._others[rank]  # it has ended, or is out of reach

    def _take(self) -> None:
        """Take the rings that have come."""
        while self._poll.poll(0):
            message = self._socket.recv(_RING.size)
            if len(message) == _RING.size:
                rank, call = _RING.unpack(message)
                if rank in self._others:
                    self._heard[rank] = max(call, self._heard.get(rank, 0))
