"""Compiled attention over rows of a matrix whose entries say how often a neighbour counts.

Shapes: n receivers, p rows that they see, E entries, h columns, H heads of h' = h / H columns each.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import LANES, Floats, Ints, dot

_ZERO = np.float32(0.0)


@compiled
def attend(
    pointers: Ints,
    columns: Ints,
    counts: Floats,
    own: Ints,
    states: Floats,
    scores: Floats,
    heads: int,
    part: int,
    leak: np.float32,
    bias: Floats,
    shares: Floats,
    out: Floats,
) -> None:
    """Set `out` [n, h] to the sums of the states that each receiver sees, weighted by attention, cut at 0.

    Parameters
    ----------
    own : int32 [n]
        Each receiver's own row.
    states : float32 [p, h]
    scores : float32 [p, 2 H or more]
        Of each row as a receiver, by head, then as a sender.
    part : int
        Columns h' of a head.
    shares : float32 [E, H]
        Filled with the softmax of LeakyReLU of receiver's and sender's scores.
    """
    width = out.shape[1]
    for i in range(len(own)):
        start, stop, line = pointers[i], pointers[i + 1], out[i]
        for head in range(heads):
            _softmax(columns, counts, own[i], start, stop, scores, heads, head, leak, shares)
        line[:] = _ZERO
        for entry in range(start, stop):
            near = states[columns[entry]]
            for head in range(heads):
                share = shares[entry, head]
                for j in range(head * part, (head + 1) * part):
                    line[j] += share * near[j]
        for j in range(width):
            value = line[j] + bias[j]
            line[j] = _ZERO if value <= _ZERO else value


@compiled
def _softmax(
    columns: Ints,
    counts: Floats,
    own: int,
    start: int,
    stop: int,
    scores: Floats,
    heads: int,
    head: int,
    leak: np.float32,
    shares: Floats,
) -> None:
    top, total = np.float32(-np.inf), _ZERO
    for entry in range(start, stop):
        score = scores[own, head] + scores[columns[entry], heads + head]
        score = score if score > _ZERO else leak * score
        shares[entry, head] = score
        top = max(top, score)
    for entry in range(start, stop):
        share = counts[entry] * np.exp(shares[entry, head] - top)
        shares[entry, head] = share
        total += share
    for entry in range(start, stop):
        shares[entry, head] /= total


@compiled
def attend_back(
    pointers: Ints,
    columns: Ints,
    own: Ints,
    states: Floats,
    scores: Floats,
    heads: int,
    part: int,
    leak: np.float32,
    shares: Floats,
    gradient: Floats,
    states_gradient: Floats,
    scores_gradient: Floats,
) -> None:
    """Set the gradients of states and scores from that of the sums, before bias and cut.

    Parameters
    ----------
    gradient : float32 [n, h]
    states_gradient : float32 [p, h]
        Without what the scores give.
    scores_gradient : float32 [p, 2 H or more]
    """
    states_gradient[:] = _ZERO
    scores_gradient[:] = _ZERO
    lanes, longest = np.zeros(LANES, np.float32), 0
    for i in range(len(own)):
        longest = max(longest, pointers[i + 1] - pointers[i])
    slopes = np.empty(longest, np.float32)
    for i in range(len(own)):
        start, stop, upstream = pointers[i], pointers[i + 1], gradient[i]
        for head in range(heads):
            first, mean = head * part, _ZERO
            for entry in range(start, stop):
                sender, share = columns[entry], shares[entry, head]
                slope = dot(upstream, states[sender], first, part, lanes)
                slopes[entry - start] = slope
                mean += share * slope
                line = states_gradient[sender]
                for j in range(first, first + part):
                    line[j] += share * upstream[j]
            for entry in range(start, stop):
                sender = columns[entry]
                slope = shares[entry, head] * (slopes[entry - start] - mean)
                if scores[own[i], head] + scores[sender, heads + head] <= _ZERO:
                    slope *= leak
                scores_gradient[own[i], head] += slope
                scores_gradient[sender, heads + head] += slope
