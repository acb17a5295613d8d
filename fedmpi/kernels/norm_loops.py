"""Compiled passes of batch, graph and layer normalisation on rows that each stand for several equal nodes.

Shapes: Q rows, h columns, G parts (graphs, or one part for the whole batch). A row's `counts` is the
number of its nodes: equal nodes have equal rows before and after, so the statistics are weighted sums.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints

_EPS = 1e-5


@compiled
def statistics(
    rows: Floats,
    row_of: Ints,
    counts: Floats,
    pointers: Ints,
    mean_scale: Floats,
    mean: Floats,
    square: Floats,
) -> None:
    """Set each part's mean and its mean of (x - alpha mean)^2.

    Parameters
    ----------
    rows : float32 [n, h]
    row_of : int32 [Q]
        Place of each row in `rows`.
    counts : float32 [Q]
    pointers : int32 [G + 1]
    mean_scale : float32 [h]
        alpha.
    mean, square : float32 [G, h]
    """
    width = rows.shape[1]
    for g in range(len(pointers) - 1):
        total, nodes = np.zeros(width), 0.0
        for q in range(pointers[g], pointers[g + 1]):
            row, weight = rows[row_of[q]], np.float64(counts[q])
            nodes += weight
            for j in range(width):
                total[j] += weight * row[j]
        centre = np.empty(width, np.float32)
        for j in range(width):
            mean[g, j] = total[j] / max(nodes, 1.0)
            centre[j] = mean_scale[j] * mean[g, j]
            total[j] = 0.0
        for q in range(pointers[g], pointers[g + 1]):
            row, weight = rows[row_of[q]], np.float64(counts[q])
            for j in range(width):
                deviation = np.float64(row[j] - centre[j])
                total[j] += weight * (deviation * deviation)
        for j in range(width):
            square[g, j] = total[j] / max(nodes, 1.0)


@compiled
def normalise(
    rows: Floats,
    row_of: Ints,
    pointers: Ints,
    mean_scale: Floats,
    weight: Floats,
    bias: Floats,
    mean: Floats,
    square: Floats,
    scaled: Floats,
    out: Floats,
    relu: bool,
) -> None:
    """Set ``scaled = (x - alpha mean) / sqrt(square + eps)`` and ``out = gamma scaled + beta``.

    Parameters
    ----------
    scaled, out : float32 [Q, h]
    weight, bias : float32 [h]
        gamma and beta.
    relu : bool
        Whether `out` goes through ReLU; NaN stays.
    """
    width, floor = rows.shape[1], np.float32(0.0 if relu else -np.inf)
    centre, inverse = np.empty(width, np.float32), np.empty(width, np.float32)
    for g in range(len(pointers) - 1):
        for j in range(width):
            centre[j] = mean_scale[j] * mean[g, j]
            inverse[j] = np.float32(1.0 / np.sqrt(np.float64(square[g, j]) + _EPS))
        for q in range(pointers[g], pointers[g + 1]):
            row, target, result = rows[row_of[q]], scaled[q], out[q]
            for j in range(width):
                target[j] = (row[j] - centre[j]) * inverse[j]
                value = weight[j] * target[j] + bias[j]
                result[j] = floor if value <= floor else value


@compiled
def normalise_back(
    gradient: Floats,
    counts: Floats,
    pointers: Ints,
    scaled: Floats,
    mean_scale: Floats,
    weight: Floats,
    mean: Floats,
    square: Floats,
    fixed: bool,
    weight_gradient: Floats,
    bias_gradient: Floats,
    mean_scale_gradient: Floats,
) -> None:
    """Turn the gradient of gamma scaled + beta, summed over each row's nodes, into that of x, in place.

    Parameters
    ----------
    gradient : float32 [Q, h]
    fixed : bool
        Mean and square were given, not taken from the rows.
    weight_gradient, bias_gradient, mean_scale_gradient : float32 [h]
        Added to.
    """
    width = gradient.shape[1]
    plain, along, offset = (
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.float32),
    )
    for g in range(len(pointers) - 1):
        sums, products, rests, nodes = np.zeros(width), np.zeros(width), np.zeros(width), 0.0
        for q in range(pointers[g], pointers[g + 1]):
            upstream, x, count = gradient[q], scaled[q], np.float64(counts[q])
            nodes += count
            for j in range(width):
                sums[j] += upstream[j]
                products[j] += np.float64(upstream[j]) * x[j]
                rests[j] += count * x[j]
        for j in range(width):
            slope = weight[j] / np.sqrt(np.float64(square[g, j]) + _EPS)
            bias_gradient[j] += np.float32(sums[j])
            weight_gradient[j] += np.float32(products[j])
            plain[j], along[j], offset[j] = slope, 0.0, 0.0
            if not fixed and nodes > 0.0:
                whole = slope * (sums[j] - products[j] * rests[j] / nodes)
                mean_scale_gradient[j] -= np.float32(mean[g, j] * whole)
                along[j] = slope * products[j] / nodes
                offset[j] = mean_scale[j] * whole / nodes
        for q in range(pointers[g], pointers[g + 1]):
            upstream, x, count = gradient[q], scaled[q], counts[q]
            for j in range(width):
                upstream[j] = plain[j] * upstream[j] - count * (x[j] * along[j] + offset[j])


@compiled
def normalise_rows(
    rows: Floats,
    row_of: Ints,
    hidden: int,
    weight: Floats,
    bias: Floats,
    scaled: Floats,
    out: Floats,
    relu: bool,
) -> Floats:
    """Set each row's ``scaled = (x - mean) / sqrt(variance + eps)`` and ``out = gamma scaled + beta``.

    Parameters
    ----------
    hidden : int
        Columns that count; the others are padding.
    weight, bias : float32 [h]
        gamma and beta, 0 in the padding.

    Returns
    -------
    float32 [Q]
        One over the roots.
    """
    inverse = np.empty(len(row_of), np.float32)
    floor = np.float32(0.0 if relu else -np.inf)
    for q in range(len(row_of)):
        row, target, result = rows[row_of[q]], scaled[q], out[q]
        total, square = 0.0, 0.0
        for j in range(hidden):
            total += row[j]
        mean = total / hidden
        for j in range(hidden):
            deviation = row[j] - mean
            square += deviation * deviation
        centre, inverse[q] = np.float32(mean), np.float32(1.0 / np.sqrt(square / hidden + _EPS))
        for j in range(rows.shape[1]):
            target[j] = (row[j] - centre) * inverse[q]
            value = weight[j] * target[j] + bias[j]
            result[j] = floor if value <= floor else value
    return inverse


@compiled
def normalise_rows_back(
    gradient: Floats,
    hidden: int,
    scaled: Floats,
    inverse: Floats,
    weight: Floats,
    weight_gradient: Floats,
    bias_gradient: Floats,
) -> None:
    """Turn the gradient of gamma scaled + beta, summed over each row's nodes, into that of x, in place.

    Parameters
    ----------
    gradient : float32 [Q, h]
    weight_gradient, bias_gradient : float32 [h]
        Added to.
    """
    width = gradient.shape[1]
    sums, products = np.zeros(width), np.zeros(width)
    for q in range(len(gradient)):
        upstream, x = gradient[q], scaled[q]
        plain, along = 0.0, 0.0
        for j in range(width):
            sums[j] += upstream[j]
            products[j] += np.float64(upstream[j]) * x[j]
        for j in range(hidden):
            slope = np.float64(weight[j]) * upstream[j]
            plain += slope
            along += slope * x[j]
        plain, along = plain / hidden, along / hidden
        for j in range(width):
            upstream[j] = inverse[q] * np.float32(weight[j] * upstream[j] - plain - along * x[j])
        upstream[hidden:] = 0.0
    for j in range(width):
        bias_gradient[j] += np.float32(sums[j])
        weight_gradient[j] += np.float32(products[j])


@compiled
def add_rows(rows: Floats, row_of: Ints, out: Floats) -> None:
    """Add row q of `rows` [Q, h] to row ``row_of[q]`` of `out` [n, h]."""
    for q in range(len(row_of)):
        source, target = rows[q], out[row_of[q]]
        for j in range(rows.shape[1]):
            target[j] += source[j]
