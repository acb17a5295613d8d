"""Compiled passes of FedStar's structure channel over tiles of rows; see `fedmpi.kernels.structure`.

Shapes: p rows of a layer, n rows of the next, h columns (the hidden width, padded). All float arrays
are float32 and C-contiguous.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import (
    TILE,
    Floats,
    Ints,
    add_column_sums,
    add_transposed_times,
    combine,
    rows_times,
)


@compiled
def spread(s: Floats, roots: Floats, own_t: Floats, other_t: Floats, own: Floats, other: Floats) -> None:
    """Map rows for both who read them: ``own = r (s W^T)`` for this channel, ``other = s V^T``.

    Parameters
    ----------
    s : float32 [p, w]
    roots : float32 [p]
        r.
    own_t, other_t : float32 [w, h]
        Transposed weights W and V.
    own, other : float32 [p, h]
    """
    for first in range(0, len(s), TILE):
        count = min(TILE, len(s) - first)
        rows_times(s, first, count, own_t, own, first)
        rows_times(s, first, count, other_t, other, first)
        _scale(own, first, count, roots, first)


@compiled
def gather(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    own: Floats,
    other: Floats,
    roots: Floats,
    bias: Floats,
    s: Floats,
    added: Floats,
) -> None:
    """Sum over neighbours: ``s = tanh(r (M own) + b)`` and ``added = M other``.

    Parameters
    ----------
    pointers, columns, weights
        The sparse matrix M [n, p].
    own, other : float32 [p, h]
    roots : float32 [n]
    bias : float32 [h]
    s, added : float32 [n, h]
    """
    for first in range(0, len(s), TILE):
        count = min(TILE, len(s) - first)
        combine(pointers, columns, weights, other, first, count, added, first)
        combine(pointers, columns, weights, own, first, count, s, first)
        for i in range(first, first + count):
            row, root = s[i], roots[i]
            for j in range(s.shape[1]):
                row[j] = _tanh(root * row[j] + bias[j])


@compiled
def gather_back(gradient: Floats, s: Floats, roots: Floats, bias_gradient: Floats) -> None:
    """Turn the gradient of `s` into that of ``M own``, in place, and add the bias's.

    Parameters
    ----------
    gradient : float32 [n, h]
    s : float32 [n, h]
        What `gather` set.
    roots : float32 [n]
    bias_gradient : float32 [h]
    """
    for first in range(0, len(s), TILE):
        count = min(TILE, len(s) - first)
        for i in range(first, first + count):
            row, value = gradient[i], s[i]
            for j in range(s.shape[1]):
                row[j] *= np.float32(1.0) - value[j] * value[j]
        add_column_sums(gradient, first, count, bias_gradient)
        _scale(gradient, first, count, roots, first)


@compiled
def spread_back(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    own_gradient: Floats,
    given_gradient: Floats,
    roots: Floats,
    s: Floats,
    own: Floats,
    other: Floats,
    own_weight_gradient: Floats,
    other_weight_gradient: Floats,
    out: Floats,
) -> None:
    """Take the gradients of the sums over neighbours back to the rows that were mapped.

    Parameters
    ----------
    pointers, columns, weights
        The transposed matrix M [p, n].
    own_gradient, given_gradient : float32 [n, h]
        Of ``M own`` and ``M other``.
    roots : float32 [p]
    s : float32 [p, h]
    own, other : float32 [h, h]
        Weights W and V; their gradients are added to.
    out : float32 [p, h]
        Gradient of `s`.
    """
    tile, part = np.empty((TILE, s.shape[1]), np.float32), np.empty((TILE, s.shape[1]), np.float32)
    for first in range(0, len(s), TILE):
        count = min(TILE, len(s) - first)
        combine(pointers, columns, weights, given_gradient, first, count, tile, 0)
        add_transposed_times(tile, 0, count, s, first, other_weight_gradient)
        rows_times(tile, 0, count, other, out, first)
        combine(pointers, columns, weights, own_gradient, first, count, tile, 0)
        _scale(tile, 0, count, roots, first)
        add_transposed_times(tile, 0, count, s, first, own_weight_gradient)
        rows_times(tile, 0, count, own, part, 0)
        for i in range(count):
            for j in range(s.shape[1]):
                out[first + i, j] += part[i, j]


@compiled
def inputs_back(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    own_gradient: Floats,
    given_gradient: Floats,
    roots: Floats,
    s: Floats,
    own_weight_gradient: Floats,
    other_weight_gradient: Floats,
) -> None:
    """Add the gradients of the maps that read the channel's inputs, which need no gradient themselves.

    Parameters
    ----------
    pointers, columns, weights, own_gradient, given_gradient, roots
        As for `spread_back`.
    s : float32 [p, w]
        The inputs.
    own_weight_gradient, other_weight_gradient : float32 [w, h]
        Of the transposed maps.
    """
    tile = np.empty((TILE, own_gradient.shape[1]), np.float32)
    for first in range(0, len(s), TILE):
        count = min(TILE, len(s) - first)
        combine(pointers, columns, weights, given_gradient, first, count, tile, 0)
        add_transposed_times(s, first, count, tile, 0, other_weight_gradient)
        combine(pointers, columns, weights, own_gradient, first, count, tile, 0)
        _scale(tile, 0, count, roots, first)
        add_transposed_times(s, first, count, tile, 0, own_weight_gradient)


@compiled
def _scale(rows: Floats, first: int, count: int, roots: Floats, roots_first: int) -> None:
    for i in range(count):
        row, root = rows[first + i], roots[roots_first + i]
        for j in range(rows.shape[1]):
            row[j] *= root


@compiled
def _tanh(x: np.float32) -> np.float32:
    """Return tanh within 5 units in the last place: a rational function, as in Eigen; NaN stays."""
    limit = np.float32(7.90531110763549805)
    x = limit if x > limit else x
    x = -limit if x < -limit else x
    z = x * x
    p = np.float32(-2.76076847742355e-16)
    p = p * z + np.float32(2.00018790482477e-13)
    p = p * z + np.float32(-8.60467152213735e-11)
    p = p * z + np.float32(5.12229709037114e-08)
    p = p * z + np.float32(1.48572235717979e-05)
    p = p * z + np.float32(6.37261928875436e-04)
    p = p * z + np.float32(4.89352455891786e-03)
    q = np.float32(1.19825839466702e-06)
    q = q * z + np.float32(1.18534705686654e-04)
    q = q * z + np.float32(2.26843463243900e-03)
    q = q * z + np.float32(4.89352518554385e-03)
    return x * p / q
