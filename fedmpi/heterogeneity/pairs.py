"""Pairs of graphs, numbered, so that any of them can be drawn without listing all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.graphs.packed import Int, pointers


def triangular(numbers: Int) -> tuple[Int, Int]:
    """Return ``(low, high)`` with ``low < high`` and ``number = high (high - 1) / 2 + low``; below 2**50."""
    numbers = np.asarray(numbers, np.int64)
    high = ((1 + np.sqrt(1 + 8 * numbers)) // 2).astype(np.int64)
    return numbers - high * (high - 1) // 2, high


@dataclass(frozen=True)
class Pairs:
    """All pairs within one set of graphs, or all pairs of graphs from different sets.

    Attributes
    ----------
    sizes : tuple of int
        Graphs of each set; a graph's number counts on from set to set.
    """

    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of pairs."""
        if len(self.sizes) == 1:
            return self.sizes[0] * (self.sizes[0] - 1) // 2
        return (sum(self.sizes) ** 2 - sum(size * size for size in self.sizes)) // 2

    def at(self, numbers: Int) -> tuple[Int, Int]:
        """Return the graph numbers of the pairs ``numbers``, each in 0 .. count - 1."""
        if len(self.sizes) == 1:
            return triangular(numbers)
        earlier = pointers(self.sizes)
        first_pairs = pointers(np.asarray(self.sizes) * earlier[:-1])
        later = np.searchsorted(first_pairs, numbers, side="right") - 1
        within = numbers - first_pairs[later]
        return within % earlier[later], earlier[later] + within // earlier[later]
