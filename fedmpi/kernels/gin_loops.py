"""Compiled passes of GIN over tiles of rows; see `fedmpi.kernels.gin` for what they make up.

Shapes: n rows of a layer, h columns (the hidden width, padded), p rows of the layer before.
All float arrays are float32 and C-contiguous.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import (
    TILE,
    Floats,
    Ints,
    add_bias,
    add_bias_relu,
    add_column_sums,
    add_transposed_times,
    combine,
    rows_times,
)


@compiled
def convolve(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    x: Floats,
    first_t: Floats,
    first_bias: Floats,
    second_t: Floats,
    second_bias: Floats,
    summed: Floats,
    inner: Floats,
    out: Floats,
    relu: bool,
    added: Floats,
    added_of: Ints,
    mapped: bool,
) -> None:
    """Apply one convolution: ``relu((M x) W1^T + g + b1) W2^T + b2``, through ReLU on request.

    Parameters
    ----------
    pointers, columns, weights
        The sparse matrix M [n, p].
    x : float32 [p, h]
    first_t, second_t : float32 [h, h]
        Transposed weights.
    summed, inner : float32 [n, h] or [TILE, h]
        Kept for the backward pass if they have n rows; scratch otherwise.
    out : float32 [n, h]
    added : float32 [*, h]
    added_of : int32 [n] or [0]
        Row of `added` that is added to each row; none if empty.
    mapped : bool
        Whether W1 was applied to `x` before; then `summed` is not used.
    """
    rows = len(pointers) - 1
    keep = len(inner) >= rows
    for first in range(0, rows, TILE):
        count = min(TILE, rows - first)
        at = first if keep else 0
        if mapped:
            combine(pointers, columns, weights, x, first, count, inner, at)
        else:
            combine(pointers, columns, weights, x, first, count, summed, at)
            rows_times(summed, at, count, first_t, inner, at)
        if len(added_of) > 0:
            for i in range(count):
                source, target = added[added_of[first + i]], inner[at + i]
                for j in range(inner.shape[1]):
                    target[j] += source[j]
        add_bias_relu(inner, at, count, first_bias)
        rows_times(inner, at, count, second_t, out, first)
        if relu:
            add_bias_relu(out, first, count, second_bias)
        else:
            add_bias(out, first, count, second_bias)


@compiled
def convolve_back(
    gradient: Floats,
    inner: Floats,
    summed: Floats,
    first: Floats,
    second: Floats,
    first_gradient: Floats,
    first_bias_gradient: Floats,
    second_gradient: Floats,
    second_bias_gradient: Floats,
    out: Floats,
    given_gradient: Floats,
    added_of: Ints,
    mapped: bool,
) -> None:
    """Take a convolution's gradient back through its two linear maps, or the second if `mapped`.

    Parameters
    ----------
    gradient : float32 [n, h]
        With respect to the second map's output, before its ReLU.
    inner, summed : float32 [n, h]
        What `convolve` kept.
    first, second : float32 [h, h]
        Weights; their gradients, and those of the biases, are added to.
    out : float32 [n, h]
        Gradient with respect to the sums over neighbours.
    given_gradient : float32 [*, h]
        With respect to `added` of `convolve`; what is found is added to it.
    added_of : int32 [n] or [0]
    """
    width = gradient.shape[1]
    tile = np.empty((TILE, width), np.float32)
    for start in range(0, len(gradient), TILE):
        count = min(TILE, len(gradient) - start)
        add_column_sums(gradient, start, count, second_bias_gradient)
        add_transposed_times(gradient, start, count, inner, start, second_gradient)
        rows_times(gradient, start, count, second, tile, 0)
        for i in range(count):
            for j in range(width):
                tile[i, j] = np.float32(0.0) if inner[start + i, j] <= 0.0 else tile[i, j]
        if len(added_of) > 0:
            for i in range(count):
                source, target = tile[i], given_gradient[added_of[start + i]]
                for j in range(width):
                    target[j] += source[j]
        add_column_sums(tile, 0, count, first_bias_gradient)
        if mapped:
            for i in range(count):
                for j in range(width):
                    out[start + i, j] = tile[i, j]
        else:
            add_transposed_times(tile, 0, count, summed, start, first_gradient)
            rows_times(tile, 0, count, first, out, start)
