"""Graphs together with their diffused view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedmpi.graphs.diffusion import WeightedTopology
from fedmpi.graphs.packed import GraphSet, Int

_LARGEST_PART = 256
"""Graphs encoded at a time without gradients; bounds memory."""


@dataclass(frozen=True)
class ViewedGraphs:
    """A client's graphs and their diffused view, where the objective has one."""

    graphs: GraphSet
    diffused: WeightedTopology | None

    @property
    def plain(self) -> ViewedGraphs:
        """The same graphs without their view."""
        return ViewedGraphs(self.graphs, None)

    def take(self, numbers: Int) -> ViewedGraphs:
        """Return the given graphs, packed anew."""
        diffused = None if self.diffused is None else self.diffused.take(numbers)
        return ViewedGraphs(self.graphs.take(numbers), diffused)

    def parts(self) -> Iterator[ViewedGraphs]:
        """Yield all graphs, some at a time."""
        everything = np.arange(self.graphs.num_graphs)
        for cut in range(0, len(everything), _LARGEST_PART):
            yield self.take(everything[cut : cut + _LARGEST_PART])
