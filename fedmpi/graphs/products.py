"""Compiled products that a graph network needs; float32, C-contiguous, widths in multiples of 16.

The functions that work on a tile of rows are called by the models' kernels, so
that what a tile needs stays in the innermost cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs import simd
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.simd import MIDDLE, NARROW, ROWS, WIDE

TILE = 64
"""Rows worked on together: three tiles of 64 columns fit into 48 KiB."""

LANES = 16
"""Parts that a dot product is taken in."""

_ZERO = np.float32(0.0)

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


def padded(width: int) -> int:
    """Return the next multiple of `NARROW`."""
    return -(-width // NARROW) * NARROW


@compiled
def rows_times(a: Floats, first: int, count: int, b: Floats, out: Floats, out_first: int) -> None:
    """Set rows ``out_first ..`` of `out` to rows ``first ..`` of `a` times `b`, `count` rows.

    Parameters
    ----------
    a : float32 [n, k]
    b : float32 [k, m]
    out : float32 [*, >= m]
    """
    depth, width, stride = a.shape[1], b.shape[1], out.shape[1]
    for i in range(0, count - count % ROWS, ROWS):
        at, to, j = (first + i) * depth, (out_first + i) * stride, 0
        while j + WIDE <= width:
            simd.rows_wide(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += WIDE
        if j + MIDDLE <= width:
            simd.rows_middle(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += MIDDLE
        while j < width:
            simd.rows_narrow(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += NARROW
    for i in range(count - count % ROWS, count):
        at, to, j = (first + i) * depth, (out_first + i) * stride, 0
        while j + WIDE <= width:
            simd.row_wide(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += WIDE
        if j + MIDDLE <= width:
            simd.row_middle(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += MIDDLE
        while j < width:
            simd.row_narrow(a, at, depth, b, j, width, out, to + j, stride, depth)
            j += NARROW


@compiled
def add_transposed_times(a: Floats, first: int, count: int, b: Floats, b_first: int, out: Floats) -> None:
    """Add to `out` the transpose of `count` rows of `a` times as many rows of `b`.

    The sum over the rows is taken from zero and then added, which keeps the error of long sums small.

    Parameters
    ----------
    a : float32 [n, k]
    b : float32 [n', m]
    out : float32 [k, m]
    """
    if count == 0:
        return
    width, columns = b.shape[1], a.shape[1]
    start, other = first * columns, b_first * width
    for i in range(0, columns - columns % ROWS, ROWS):
        j = 0
        while j + WIDE <= width:
            simd.columns_wide(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += WIDE
        if j + MIDDLE <= width:
            simd.columns_middle(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += MIDDLE
        while j < width:
            simd.columns_narrow(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += NARROW
    for i in range(columns - columns % ROWS, columns):
        j = 0
        while j + WIDE <= width:
            simd.column_wide(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += WIDE
        if j + MIDDLE <= width:
            simd.column_middle(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += MIDDLE
        while j < width:
            simd.column_narrow(a, start + i, columns, b, other + j, width, out, i * width + j, width, count)
            j += NARROW


@compiled
def combine(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    x: Floats,
    first: int,
    count: int,
    out: Floats,
    out_first: int,
) -> None:
    """Set rows of `out` to rows ``first ..`` of a sparse matrix times `x`.

    Parameters
    ----------
    pointers, columns, weights : int32 [n + 1], int32 [E], float32 [E]
        The matrix by rows.
    x : float32 [p, m]
    out : float32 [*, >= m]
    """
    width, stride = x.shape[1], out.shape[1]
    for i in range(count):
        start, at = np.int64(pointers[first + i]), (out_first + i) * stride
        entries = np.int64(pointers[first + i + 1]) - start
        if entries == 0:
            out[out_first + i, :width] = 0.0
            continue
        j = 0
        while j + WIDE <= width:
            simd.gather_wide(weights, columns, start, x, j, width, out, at + j, entries)
            j += WIDE
        if j + MIDDLE <= width:
            simd.gather_middle(weights, columns, start, x, j, width, out, at + j, entries)
            j += MIDDLE
        while j < width:
            simd.gather_narrow(weights, columns, start, x, j, width, out, at + j, entries)
            j += NARROW


@compiled
def add_bias_relu(out: Floats, first: int, count: int, bias: Floats) -> None:
    """Add a bias to rows of `out` and apply ReLU, in place; NaN stays.

    Parameters
    ----------
    out : float32 [n, m]
    first, count : int
        Rows ``first .. first + count - 1`` of `out` are changed.
    bias : float32 [>= m]
    """
    width = out.shape[1]
    for i in range(first, first + count):
        row = out[i]
        for j in range(width):
            value = row[j] + bias[j]
            row[j] = np.float32(0.0) if value <= 0.0 else value


@compiled
def add_bias(out: Floats, first: int, count: int, bias: Floats) -> None:
    """Add a bias to rows of `out`, in place.

    Parameters
    ----------
    out, first, count, bias
        As for `add_bias_relu`.
    """
    for i in range(first, first + count):
        for j in range(out.shape[1]):
            out[i, j] += bias[j]


@compiled
def scale_rows(out: Floats, first: int, count: int, factors: Floats) -> None:
    """Multiply rows of `out` by the same rows of `factors`, element by element, in place.

    Parameters
    ----------
    out, factors : float32 [n, m]
    first, count : int
        Rows ``first .. first + count - 1`` of `out` are changed.
    """
    for i in range(first, first + count):
        for j in range(out.shape[1]):
            out[i, j] *= factors[i, j]


@compiled
def relu_backward(out: Floats, count: int, active: Floats) -> None:
    """Set the first rows of `out` to 0 where `active` is not above 0; NaN counts as above."""
    for i in range(count):
        for j in range(out.shape[1]):
            out[i, j] = np.float32(0.0) if active[i, j] <= 0.0 else out[i, j]


@compiled
def add_column_sums(a: Floats, first: int, count: int, out: Floats) -> None:
    """Add the column sums of `count` rows of `a` [n, m], taken from zero, to `out` [m].

    Parameters
    ----------
    a : float32 [n, m]
    first, count : int
        Rows ``first .. first + count - 1`` of `a` are summed.
    out : float32 [m]
        Changed in place.
    """
    width = a.shape[1]
    sums = np.zeros(width, np.float32)
    for i in range(first, first + count):
        for j in range(width):
            sums[j] += a[i, j]
    for j in range(width):
        out[j] += sums[j]


@compiled
def dot(a: Floats, b: Floats, first: int, count: int, lanes: Floats) -> np.float32:
    """Return the sum of products of elements ``first ..``, in `LANES` lanes, then in order.

    Parameters
    ----------
    a, b : float32 [n]
    first, count : int
        Elements ``first .. first + count - 1`` are multiplied.
    lanes : float32 [LANES]
        Scratch.
    """
    lanes[:] = _ZERO
    whole = first + count - count % LANES
    for start in range(first, whole, LANES):
        for lane in range(LANES):
            lanes[lane] += a[start + lane] * b[start + lane]
    for rest in range(whole, first + count):
        lanes[rest - whole] += a[rest] * b[rest]
    total = _ZERO
    for lane in range(LANES):
        total += lanes[lane]
    return total


@compiled
def multiply(a: Floats, b: Floats, out: Floats) -> None:
    """Set `out` to ``a b``."""
    rows_times(a, 0, len(a), b, out, 0)


@compiled
def multiply_sparse(pointers: Ints, columns: Ints, weights: Floats, x: Floats, out: Floats) -> None:
    """Set `out` to a sparse matrix times `x`.

    Parameters
    ----------
    pointers, columns, weights : int32 [n + 1], int32 [E], float32 [E]
        The matrix by rows.
    x : float32 [p, m]
    out : float32 [n, >= m]
    """
    combine(pointers, columns, weights, x, 0, len(pointers) - 1, out, 0)
