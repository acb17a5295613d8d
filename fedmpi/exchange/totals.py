"""Sums over clients of what a round is measured by, by secure aggregation: hits, counts and losses.

A count is a whole number from 0, below 2^60, cut into digits that the sums of "fixed32" hold exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fedmpi.client.training import MOST
from fedmpi.exchange.aggregation import Aggregation, Groups, Ints

_BITS = MOST.bit_length() - 1

MOST_CLIENTS = 2**13
"""Clients whose counts can be summed: a digit has one bit then."""


class Totals:
    """Adds counts of clients; rank 0 learns the sums.

    Parameters
    ----------
    sums : callable
        Returns what averages vectors of a size whose elements are at most `clip`, its arguments.
    num_clients : int
        At most `MOST_CLIENTS`.
    width : int
        Counts of a client.
    """

    def __init__(self, sums: Callable[[int, float], Aggregation], num_clients: int, width: int) -> None:
        assert num_clients <= MOST_CLIENTS
        # float32 holds 24 bits; N terms, each rounded by half of N * 2^(bits - 29), add up to less than 1/2.
        self._bits = min(24, 27 - 2 * math.ceil(math.log2(max(num_clients, 2))))
        self._digits = -(-_BITS // self._bits)
        self._num_clients, self._width = num_clients, width
        self._aggregation = sums(width * self._digits, 2.0**self._bits)

    def sums(self, clients: Ints, counts: Mapping[int, Sequence[float]]) -> list[int] | None:
        """Return the sums of the counts over some clients, on rank 0 (a collective call).

        None on other ranks, and where too few clients take part for a sum to hide one.

        Parameters
        ----------
        clients : int64 [k]
            Who takes part; the same on every rank.
        counts : mapping of int to sequence of float
            Of those that this rank hosts, rounded here; one that is not finite counts as 0.
        """
        if len(clients) < 2:
            return None
        together = np.zeros(self._num_clients, np.int64)
        groups = Groups(together, together, {0: 0})
        held = {number: self._cut(values) for number, values in counts.items()}
        means = self._aggregation.means(groups, clients, together + 1, held)
        if 0 not in means:
            return None
        digits = np.rint(means[0] * len(clients)).astype(np.int64).reshape(self._width, self._digits)
        return [sum(int(each) << self._bits * place for place, each in enumerate(row)) for row in digits]

    def _cut(self, values: Sequence[float]) -> npt.NDArray[np.float32]:
        """Return each figure's digits, the lowest first."""
        whole = [round(value) if value < MOST else 0 for value in values]  # NaN is not
        assert len(whole) == self._width and min(whole) >= 0
        mask, places = (1 << self._bits) - 1, range(self._digits)
        return np.array([each >> self._bits * at & mask for each in whole for at in places], np.float32)
