"""Mini-batches whose edges have weights, as diffused views have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from torch import Tensor

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import WeightedTopology
from fedmpi.graphs.sparse import CsrProduct, csr, transposed


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
        return self._both(row_ptr, columns, np.insert(self.weights, self.topology.row_ptr[1:], ones))

    @cached_property
    def _matrix(self) -> tuple[Tensor, Tensor]:
        return self._both(self.topology.row_ptr, self.topology.columns, self.weights)

    def _both(self, row_ptr: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return a matrix and its transpose on the device."""
        num_nodes = self.topology.num_nodes
        pointers, rows, order = transposed(row_ptr, columns)
        matrices = csr(row_ptr, columns, weights, num_nodes), csr(pointers, rows, weights[order], num_nodes)
        return matrices[0].to(self.x.device), matrices[1].to(self.x.device)

    def spread(self, x: Tensor) -> Tensor:
        """Return ``S x``, [N, h]; `sum_neighbourhood` is ``(S + I) x``."""
        matrix, transpose = self._matrix
        return CsrProduct.apply(matrix, transpose, x)  # type: ignore[no-any-return, no-untyped-call]
