"""Which rank hosts which client (imports without mpi4py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_MOST_TO_IMPROVE = 256
"""Beyond this many clients longest-first alone is within a client's cost of even."""


def place(costs: Sequence[int], workers: Sequence[int], busy: int = 0) -> Ints:
    """Return the rank of each client so that the heaviest rank is as light as can be found.

    Longest-processing-time-first, then moves and swaps that lower the heavier of
    two ranks until none is left. A pure function of the counts, never of timings.

    Parameters
    ----------
    costs : sequence of int
        Counted cost of each client's round, in FLOPs.
    workers : sequence of int
        Ranks that may host clients.
    busy : int, optional
        Cost of what the last of these ranks does beside its clients.

    Returns
    -------
    int64 [clients]
    """
    weights = np.asarray(costs, dtype=np.int64)
    loads = np.zeros(len(workers), np.int64)
    loads[-1] = busy
    slot = np.zeros(len(weights), np.int64)
    for client in np.argsort(-weights, kind="stable"):
        slot[client] = int(np.argmin(loads))
        loads[slot[client]] += weights[client]
    while len(weights) <= _MOST_TO_IMPROVE and _improve(weights, slot, loads):
        pass
    return np.asarray(workers, np.int64)[slot]


def _improve(weights: Ints, slot: Ints, loads: Ints) -> bool:
    """Move or swap one client of the heaviest rank; False when that lowers no pair's maximum."""
    heavy = int(np.argmax(loads))
    for client in np.flatnonzero(slot == heavy):
        for other in range(len(loads)):
            if other == heavy:
                continue
            for partner in [-1, *np.flatnonzero(slot == other)]:
                gain = weights[client] - (weights[partner] if partner >= 0 else 0)
                if 0 < gain < loads[heavy] - loads[other]:
                    slot[client] = other
                    if partner >= 0:
                        slot[partner] = heavy
                    loads[heavy] -= gain
                    loads[other] += gain
                    return True
    return False
