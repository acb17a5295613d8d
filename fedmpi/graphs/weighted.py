"""Mini-batches whose edges have weights, as diffused views have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from torch import Tensor

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import WeightedTopology
from fedmpi.graphs.sparse import product


@dataclass(frozen=True)
class WeightedBatch(Batch):
    """Graphs of one step whose edges have weights: the matrix S of a diffused view.

    Attributes
    ----------
    weights : float32 [E]
        Weight of each edge, in the order of ``topology.columns``.
    """

    weights: np.ndarray = field(kw_only=True)

    @classmethod
    def view_of(cls, batch: Batch, view: WeightedTopology) -> WeightedBatch:
        """Return another view of a batch's graphs, with the same features and labels."""
        return cls(view.topology, batch.x, batch.labels, weights=view.weights)

    @cached_property
    def _neighbourhood(self) -> tuple[Tensor, Tensor]:
        row_ptr, columns = self.closed
        ones = np.ones(self.topology.num_nodes, np.float32)
        return self._with_transpose(
            row_ptr, columns, np.insert(self.weights, self.topology.row_ptr[1:], ones)
        )

    @cached_property
    def _matrix(self) -> tuple[Tensor, Tensor]:
        return self._with_transpose(self.topology.row_ptr, self.topology.columns, self.weights)

    def spread(self, x: Tensor) -> Tensor:
        """Return ``S x``, [N, h]; `sum_neighbourhood` is ``(S + I) x``."""
        return product(*self._matrix, x)
