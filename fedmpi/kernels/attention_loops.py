"""Compiled attention over rows of a matrix whose entries say how often a neighbour counts.

Shapes: n receivers, p rows that they see, E entries, h columns, H heads of h' = h / H columns each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import LANES, Floats, Ints, dot

_ZERO = np.float32(0.0)


class Near(NamedTuple):
    """Neighbourhoods of the receivers.

    Attributes
    ----------
    pointers, columns : int32 [n + 1], int32 [E]
        Rows that each receiver sees.
    counts : float32 [E]
        How often.
    own : int32 [n]
        Each receiver's own row.
    """

    pointers: Ints
    columns: Ints
    counts: Floats
    own: Ints


class Heads(NamedTuple):
    """Number of heads H, columns h' of each, and the slope of LeakyReLU below 0."""

    number: int
    width: int
    leak: np.float32


@compiled
def attend(
    near: Near, heads: Heads, states: Floats, scores: Floats, bias: Floats, shares: Floats, out: Floats
) -> None:
    """Set `out` [n, h] to the sums of the states that each receiver sees, weighted by attention, after ReLU.

    Parameters
    ----------
    states : float32 [p, h]
    scores : float32 [p, 2 H or more]
        Of each row as a receiver, by head, then as a sender.
    shares : float32 [E, H]
        Filled with the softmax of LeakyReLU of receiver's and sender's scores.
    """
    for i in range(len(near.own)):
        line = out[i]
        for head in range(heads.number):
            _softmax(near, heads, i, head, scores, shares)
        line[:] = _ZERO
        for entry in range(near.pointers[i], near.pointers[i + 1]):
            row = states[near.columns[entry]]
            for head in range(heads.number):
                share = shares[entry, head]
                for j in range(head * heads.width, (head + 1) * heads.width):
                    line[j] += share * row[j]
        for j in range(len(line)):
            value = line[j] + bias[j]
            line[j] = _ZERO if value <= _ZERO else value


@compiled
def _softmax(near: Near, heads: Heads, i: int, head: int, scores: Floats, shares: Floats) -> None:
    """Set a receiver's attention of a head, without dropout (unlike `fedmpi.kernels.molecules.gat`)."""
    start, stop, own = near.pointers[i], near.pointers[i + 1], near.own[i]
    top, total = np.float32(-np.inf), _ZERO
    for entry in range(start, stop):
        score = scores[own, head] + scores[near.columns[entry], heads.number + head]
        score = score if score > _ZERO else heads.leak * score
        shares[entry, head] = score
        top = max(top, score)
    for entry in range(start, stop):
        share = near.counts[entry] * np.exp(shares[entry, head] - top)
        shares[entry, head] = share
        total += share
    for entry in range(start, stop):
        shares[entry, head] /= total


@compiled
def attend_back(
    near: Near,
    heads: Heads,
    states: Floats,
    scores: Floats,
    shares: Floats,
    gradient: Floats,
    states_gradient: Floats,
    scores_gradient: Floats,
) -> None:
    """Set the gradients of states and scores from that of the sums, before bias and ReLU.

    Parameters
    ----------
    gradient : float32 [n, h]
    states_gradient : float32 [p, h]
        Without what the scores give.
    scores_gradient : float32 [p, 2 H or more]
    """
    states_gradient[:] = _ZERO
    scores_gradient[:] = _ZERO
    lanes = np.zeros(LANES, np.float32)
    share_gradients = np.empty(np.max(np.diff(near.pointers)) if len(near.own) else 0, np.float32)
    for i in range(len(near.own)):
        start, upstream = near.pointers[i], gradient[i]
        for head in range(heads.number):
            first, mean = head * heads.width, _ZERO
            for entry in range(start, near.pointers[i + 1]):
                sender, share = near.columns[entry], shares[entry, head]
                share_gradient = dot(upstream, states[sender], first, heads.width, lanes)
                share_gradients[entry - start] = share_gradient
                mean += share * share_gradient
                line = states_gradient[sender]
                for j in range(first, first + heads.width):
                    line[j] += share * upstream[j]
            _scores_back(near, heads, i, head, scores, shares, share_gradients, mean, scores_gradient)


@compiled
def _scores_back(
    near: Near,
    heads: Heads,
    i: int,
    head: int,
    scores: Floats,
    shares: Floats,
    share_gradients: Floats,
    mean: np.float32,
    gradient: Floats,
) -> None:
    """Add a receiver's part of a head to the gradients of scores, from those of shares and their mean."""
    start, own = near.pointers[i], near.own[i]
    for entry in range(start, near.pointers[i + 1]):
        sender = near.columns[entry]
        share_gradient = shares[entry, head] * (share_gradients[entry - start] - mean)
        if scores[own, head] + scores[sender, heads.number + head] <= _ZERO:
            share_gradient *= heads.leak
        gradient[own, head] += share_gradient
        gradient[sender, heads.number + head] += share_gradient
