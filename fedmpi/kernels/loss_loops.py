"""Losses of many nodes with their gradients in one compiled pass; float32, C-contiguous, sums in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import TILE, Floats, Ints, add_transposed_times, rows_times

Doubles = npt.NDArray[np.float64]

_LOG2_E = np.float32(1.4426950408889634)
_LN_2_HIGH = np.float32(0.693359375)
_LN_2_LOW = np.float32(-2.12194440e-4)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_LARGEST = np.float32(40.0)
_LOG_2 = float(np.log(2.0))


@compiled
def negative_exponential(x: np.float32) -> np.float32:
    """Return ``exp(-x)`` for x >= 0, to two units in the last place (Cephes' expf).

    Beyond 40 it is exp(-40), whose square is no subnormal number.
    """
    value = min(x, _LARGEST)
    whole = np.int32(value * _LOG2_E + _HALF)
    count = np.float32(whole)
    rest = (count * _LN_2_HIGH - value) + count * _LN_2_LOW
    sum = np.float32(1.9875691500e-4)
    sum = sum * rest + np.float32(1.3981999507e-3)
    sum = sum * rest + np.float32(8.3334519073e-3)
    sum = sum * rest + np.float32(4.1665795894e-2)
    sum = sum * rest + np.float32(1.6666665459e-1)
    sum = sum * rest + np.float32(5.0000001201e-1)
    power = np.int32((np.int32(127) - whole) << np.int32(23)).view(np.float32)
    return (sum * rest * rest + rest + _ONE) * power


@compiled
def log_one_plus(x: np.float32) -> np.float32:
    """Return ``log(1 + x)`` for x in [0, 1], by the series of the inverse hyperbolic tangent."""
    t = x / (x + np.float32(2.0))
    square = t * t
    sum = np.float32(2.0 / 13.0)
    sum = sum * square + np.float32(2.0 / 11.0)
    sum = sum * square + np.float32(2.0 / 9.0)
    sum = sum * square + np.float32(2.0 / 7.0)
    sum = sum * square + np.float32(2.0 / 5.0)
    sum = sum * square + np.float32(2.0 / 3.0)
    sum = sum * square + np.float32(2.0)
    return sum * t


@compiled
def jensen_shannon(
    nodes: Floats,
    graphs: Floats,
    graphs_t: Floats,
    count: int,
    pointers: Ints,
    owners: Ints,
    nodes_gradient: Floats,
    graphs_gradient: Floats,
) -> float:
    """Return `fedmpi.objectives.contrast.jensen_shannon` and set its gradients.

    Parameters
    ----------
    nodes, nodes_gradient : float32 [C, d]
        Vectors of classes of nodes; d a multiple of 16.
    graphs, graphs_gradient : float32 [b, d]
        Vectors of B graphs, b the next multiple of 16; rows behind them are 0.
    graphs_t : float32 [d, b]
    count : int
        B.
    pointers, owners : int32 [C + 1], int32 [N]
        Graph of every node, by class.
    """
    share = 1.0 / (np.float64(len(owners)) * (count - 1))
    scores, slopes = np.zeros((TILE, len(graphs)), np.float32), np.zeros((TILE, len(graphs)), np.float32)
    sums, own, positive = np.zeros(count), 0.0, 0.0
    graphs_gradient[:] = _ZERO
    for start in range(0, len(nodes), TILE):
        rows = min(TILE, len(nodes) - start)
        rows_times(nodes, start, rows, graphs_t, scores, 0)
        for r in range(rows):
            first, last = pointers[start + r], pointers[start + r + 1]
            _soften(scores[r], slopes[r], sums, count, np.float32(last - first), np.float32(share))
            for member in range(first, last):
                score = scores[r, owners[member]]
                small = negative_exponential(abs(score))
                soft, below = log_one_plus(small), small / (_ONE + small)
                own += np.float64(max(score, _ZERO) + soft) - _LOG_2
                positive += _LOG_2 - np.float64(max(-score, _ZERO) + soft)
                towards = below if score >= _ZERO else _ONE - below
                slopes[r, owners[member]] -= np.float32(share) * (_ONE - towards)
                slopes[r, owners[member]] -= towards / np.float32(len(owners))
        rows_times(slopes, 0, rows, graphs, nodes_gradient, start)
        add_transposed_times(slopes, 0, rows, nodes, start, graphs_gradient)
    others = -own - len(owners) * count * _LOG_2
    for g in range(count):
        others += sums[g]
    return others * share - positive / len(owners)


@compiled
def _soften(
    scores: Floats, slopes: Floats, sums: Doubles, count: int, nodes: np.float32, share: np.float32
) -> None:
    """Add to `sums` [B], float64, the softplus of one row of scores, for so many nodes, and set its slopes.

    A score that is not finite makes a sum that is none either.
    """
    for g in range(count):
        score = scores[g]
        small = negative_exponential(abs(score))
        soft = max(score, _ZERO) + log_one_plus(small) + (score - score)
        sums[g] += np.float64(nodes) * np.float64(soft)
        slopes[g] = share * nodes * ((_ONE if score >= _ZERO else small) / (_ONE + small))


@compiled
def inter(local: Floats, difference: Floats, counts: Floats, temperature: float, gradient: Floats) -> float:
    """Return `fedmpi.objectives.contrast.inter` and set its gradient.

    Parameters
    ----------
    local, difference, gradient : float32 [C, d]
    counts : float32 [C]
        Nodes of each row.
    """
    width, total, nodes = local.shape[1], 0.0, 0.0
    for c in range(len(counts)):
        nodes += np.float64(counts[c])
    squares, products = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for c in range(len(local)):
        for j in range(width):
            squares[j] = local[c, j] * local[c, j]
            products[j] = local[c, j] * difference[c, j]
        square, product = 0.0, 0.0
        for j in range(width):
            square += np.float64(squares[j])
            product += np.float64(products[j])
        norm = max(np.sqrt(square), 1e-12)
        excess = product / norm / temperature
        small = np.exp(-abs(excess))
        total += np.float64(counts[c]) * (max(excess, 0.0) + np.log1p(small) + (excess - excess))
        slope = (1.0 if excess >= 0.0 else small) / (1.0 + small)
        slope *= np.float64(counts[c]) / (nodes * temperature * norm)
        along, back = np.float32(slope), np.float32(slope * product / (norm * norm))
        for j in range(width):
            gradient[c, j] = along * difference[c, j] - back * local[c, j]
    return total / nodes
