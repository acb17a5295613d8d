"""The first linear map of a network whose features may be sparse: zeros are skipped, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import Int, Rows, SparseRows
from fedmpi.graphs.products import TILE, Floats, Ints, add_bias, add_column_sums, combine
from fedmpi.graphs.simd import NARROW
from fedmpi.kernels.convolution import multiply
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.models.flat import FlatModel


@dataclass(frozen=True)
class SparseFeatures:
    """Rows of sparse features [n, d].

    Attributes
    ----------
    matrix : Csr [n, u]
        Without the features that no row has.
    used : int64 [u]
        Those that some row has, ascending.
    """

    matrix: Csr
    used: Int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.matrix.num_rows

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return self.matrix.num_entries


Features = Floats | SparseFeatures
"""Rows of features, dense [n, d] or sparse."""


def features_of(table: Rows, numbers: Int) -> Features:
    """Return some rows of a table of features, as `SparseMap` takes them."""
    if not isinstance(table, SparseRows):
        return np.ascontiguousarray(table[numbers], np.float32)
    rows = table.take(numbers)
    pointers, columns = rows.row_ptr.astype(np.int32), rows.columns.astype(np.int32)
    matrix, used, _ = Csr(pointers, columns, rows.values.astype(np.float32), rows.width).compacted()
    return SparseFeatures(matrix, used)


class SparseMap(LinearMap):
    """`LinearMap` of a network's inputs; of `SparseFeatures` it works on those that are used.

    Parameters
    ----------
    model : FlatModel
    name : str
        Of the map in the module.
    """

    def __init__(self, model: FlatModel, name: str) -> None:
        super().__init__(model, name, padded_inputs=False)

    def load(self) -> None:
        """See `LinearMap.load`; `apply` transposes the weight."""
        self._copy()

    def apply(self, x: Features, out: Floats, *, relu: bool) -> None:
        """See `LinearMap.apply`; sparse inputs go through no ReLU."""
        if not isinstance(x, SparseFeatures):
            super().load()
            super().apply(x, out, relu=relu)
            return
        assert not relu
        transposed = self.transposed[: len(x.used)]
        _transpose_columns(self.weight, x.used, transposed)
        multiply(x.matrix, transposed, out)
        add_bias(out, 0, len(out), self.bias)

    def add_gradients_by_columns(self, gradient: Floats, x: Features) -> None:
        """See `LinearMap.add_gradients_by_columns`; those of features that are not used stay as they are."""
        if not isinstance(x, SparseFeatures):
            super().add_gradients_by_columns(gradient, x)
            return
        _set_gradient(*x.matrix.transposed.entries, gradient, x.used, self.weight_gradient)
        add_column_sums(gradient, 0, len(gradient), self.bias_gradient)
        self.store()


@compiled
def _transpose_columns(weight: Floats, used: Int, out: Floats) -> None:
    """Set `out` [u, h] to the transpose of some columns of `weight` [h, d]."""
    for first in range(0, len(weight), NARROW):
        for i in range(len(used)):
            column = used[i]
            for j in range(NARROW):
                out[i, first + j] = weight[first + j, column]


@compiled
def _set_gradient(
    pointers: Ints, columns: Ints, weights: Floats, gradient: Floats, used: Int, out: Floats
) -> None:
    """Set some columns of `out` [h, d] to the transpose of a sparse matrix [u, n] times `gradient` [n, h]."""
    tile = np.empty((TILE, len(out)), np.float32)
    for start in range(0, len(used), TILE):
        count = min(TILE, len(used) - start)
        combine(pointers, columns, weights, gradient, start, count, tile, 0)
        for first in range(0, len(out), NARROW):
            for i in range(count):
                column = used[start + i]
                for j in range(NARROW):
                    out[first + j, column] = tile[i, first + j]
