"""Compiled passes between the layers of an encoder and the vectors that it gives; float32, C-contiguous."""

from __future__ import annotations

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints, combine


@compiled
def gather_columns(rows: Floats, row_of: Ints, out: Floats, first: int, width: int) -> None:
    """Set `width` columns from `first` on of row c of `out` [C, w] to row ``row_of[c]`` of `rows` [K, h]."""
    for c in range(len(row_of)):
        source, target = rows[row_of[c]], out[c]
        for j in range(width):
            target[first + j] = source[j]


@compiled
def cut_columns(values: Floats, first: int, width: int, out: Floats) -> None:
    """Set `out` [n, h] to columns ``first .. first + width`` of `values` [n, w], zeros behind them."""
    for i in range(len(values)):
        for j in range(width):
            out[i, j] = values[i, first + j]
        for j in range(width, out.shape[1]):
            out[i, j] = 0.0


@compiled
def add_columns(values: Floats, row_of: Ints, first: int, width: int, out: Floats) -> None:
    """Add `width` columns from `first` on of row c of `values` [C, w] to row ``row_of[c]`` of `out`."""
    for c in range(len(row_of)):
        source, target = values[c], out[row_of[c]]
        for j in range(width):
            target[j] += source[first + j]


@compiled
def add_sums(pointers: Ints, columns: Ints, weights: Floats, x: Floats, line: Floats, out: Floats) -> None:
    """Add a sparse matrix [n, p] times `x` [p, h] to `out` [n, h]; `line` [1, h] is scratch."""
    for i in range(len(pointers) - 1):
        combine(pointers, columns, weights, x, i, 1, line, 0)
        for j in range(out.shape[1]):
            out[i, j] += line[0, j]
