"""How a rank waits for a call of MPI: asleep, with a look at it now and then."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable

from mpi4py import MPI

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


class Waits:
    """Remembers how long calls took by place, to know when to look at the next one there."""

    def __init__(self) -> None:
        self._earlier: dict[str, deque[float]] = {}

    def sleep(
        self,
        request: MPI.Request,
        place: str = "",
        size: int = 0,
        *,
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
        patient : bool, optional
            Nobody waits for the rank that sleeps.
        crowded : bool, optional
            Ranks share cores.
        alarmed : callable, optional
            Called in long waits; it may raise.
        """
        start = time.perf_counter()
        earlier = self._earlier.setdefault(place, deque(maxlen=_REMEMBERED if place else 0))
        expected, least = min(earlier, default=0.0), _DUE_NAP_S if patient else _SHORTEST_NAP_S
        asleep, tests = 0.0, min(_TESTS + size // _PIECE_BYTES, _MOST_TESTS)
        while not any(request.Test() for _ in range(tests)):
            elapsed = time.perf_counter() - start
            if elapsed > _PATIENCE_S and alarmed is not None:
                alarmed()
            brief = max(elapsed, expected) <= _BRIEF_S and not (patient or crowded)
            asleep = 0.0 if brief else nap(elapsed, expected, least)
            if asleep:
                time.sleep(asleep)
            else:
                os.sched_yield()
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
