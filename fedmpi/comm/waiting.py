"""How a rank waits for a call of MPI: asleep, until a wake-up comes or it is time to look at the call."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpi4py import MPI

from fedmpi.comm.wake_ups import WakeUps

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

_REMEMBERED = 4
"""Earlier waits at the same place whose shortest is expected again."""

_PATIENCE_S = 0.25
"""Seconds that rank 0 waits before it tests whether a rank has sent a reason to end the job."""


class Partners(NamedTuple):
    """Ranks whose messages a rank waits for in a call, and ranks that wait for its own."""

    senders: Sequence[int]
    receivers: Sequence[int]


_NOBODY = Partners((), ())


class Waits:
    """Remembers how long calls took by place, to know when to look at the next one there.

    Parameters
    ----------
    wake_ups : WakeUps, optional
        Of this node's ranks; by default nobody wakes another.
    """

    def __init__(self, wake_ups: WakeUps | None = None) -> None:
        self._wake_ups = wake_ups or WakeUps(0)
        self._earlier: dict[str, deque[float]] = {}

    def sleep(
        self,
        request: MPI.Request,
        place: str = "",
        size: int = 0,
        *,
        partners: Partners = _NOBODY,
        patient: bool = False,
        crowded: bool = False,
        alarmed: Callable[[], None] | None = None,
    ) -> None:
        """Sleep until a call is done.

        Where ranks are not crowded, a wait that is expected to be short begins with yields: who yields all
        the time still gets its share of a core.

        Measured: a rank that slept through a wait of 250 ms used 11 ms of CPU time with a look every 0.1 ms
        around its end, which two workers on two cores had to do without.

        Parameters
        ----------
        request : MPI.Request
        place : str, optional
            Point of the round; without one nothing is remembered.
        size : int, optional
            Bytes of the call.
        partners : Partners, optional
            Who wakes this rank, and whom it wakes. The call is due when all senders have woken this rank.
        patient : bool, optional
            Nobody waits for the rank that sleeps.
        crowded : bool, optional
            Ranks share cores.
        alarmed : callable, optional
            Called in long waits; it may raise.
        """
        start = since = time.perf_counter()
        earlier = self._earlier.setdefault(place, deque(maxlen=_REMEMBERED if place else 0))
        expected, least = min(earlier, default=0.0), _DUE_NAP_S if patient else _SHORTEST_NAP_S
        asleep, tests = 0.0, min(_TESTS + size // _PIECE_BYTES, _MOST_TESTS)
        self._wake_ups.begin()
        done = _look(request, tests)
        self._wake_ups.wake(partners.receivers)
        awaited = not done and self._wake_ups.awaits(partners.senders)
        while not done:
            now = time.perf_counter()
            elapsed, asleep = now - since, 0.0
            if now - start > _PATIENCE_S and alarmed is not None:
                alarmed()
            if max(elapsed, expected) <= _BRIEF_S and not (patient or crowded):
                os.sched_yield()
            elif awaited:
                # One look for each wake-up: a large part leaves its rank only when this one looks.
                asleep = 0.0 if self._wake_ups.listen(_LONGEST_NAP_S) else _LONGEST_NAP_S
                awaited = self._wake_ups.awaits(partners.senders)
                if not awaited:
                    since, expected = time.perf_counter(), 0.0
            else:
                asleep = nap(elapsed, expected, least)
                time.sleep(asleep)
            done = _look(request, tests)
        if awaited and asleep:
            self._wake_ups.miss(partners.senders)
        waited = time.perf_counter() - start
        # It ended somewhere in the last nap. Were naps remembered in full, ranks that once waited long
        # for one that stood still would make each other wait for ever.
        earlier.append(waited - asleep / 2)


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


def _look(request: MPI.Request, tests: int) -> bool:
    return any(request.Test() for _ in range(tests))
