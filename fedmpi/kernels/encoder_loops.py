"""Compiled passes between the layers of an encoder and the vectors that it gives; float32, C-contiguous."""

from __future__ import annotations

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints, combine


@compiled
def gather_columns(rows: Floats, row_of: Ints, out: Floats, first: int, width: int) -> None:
    """Set `width` columns of row c of `out` to row ``row_of[c]`` of `rows`.

    Parameters
    ----------
    rows : float32 [K, h]
    row_of : int32 [C]
    out : float32 [C, w]
    first, width : int
        Columns ``first .. first + width - 1`` of `out` are set.
    """
    for c in range(len(row_of)):
        row = row_of[c]
        for j in range(width):
            out[c, first + j] = rows[row, j]


@compiled
def spread_graphs(
    values: Floats, pointers: Ints, row_of_node: Ints, first: int, width: int, out: Floats
) -> None:
    """Set row k of `out` [K, h] to the sum of `width` columns, from `first` on, of its nodes' graphs.

    Parameters
    ----------
    values : float32 [B, w]
    pointers, row_of_node : int32 [B + 1], int32 [N]
        Nodes of each graph, and the row of each.
    """
    out[:] = 0.0
    for g in range(len(values)):
        for i in range(pointers[g], pointers[g + 1]):
            row = row_of_node[i]
            for j in range(width):
                out[row, j] += values[g, first + j]


@compiled
def add_columns(values: Floats, row_of: Ints, first: int, width: int, out: Floats) -> None:
    """Add `width` columns of row c of `values` to row ``row_of[c]`` of `out`.

    Parameters
    ----------
    values : float32 [C, w]
    row_of : int32 [C]
    first, width : int
        Columns ``first .. first + width - 1`` of `values` are added.
    out : float32 [K, h]
    """
    for c in range(len(row_of)):
        row = row_of[c]
        for j in range(width):
            out[row, j] += values[c, first + j]


@compiled
def add_sums(pointers: Ints, columns: Ints, weights: Floats, x: Floats, line: Floats, out: Floats) -> None:
    """Add a sparse matrix times `x` to `out`.

    Parameters
    ----------
    pointers, columns, weights : int32 [n + 1], int32 [E], float32 [E]
        The matrix by rows.
    x : float32 [p, h]
    line : float32 [1, h]
        Scratch.
    out : float32 [n, h]
    """
    for i in range(len(pointers) - 1):
        combine(pointers, columns, weights, x, i, 1, line, 0)
        for j in range(out.shape[1]):
            out[i, j] += line[0, j]
