"""Compiled messages along edges: the ReLU of what receiver, sender and edge give, summed by receiver.

Shapes: n receivers, p rows that they see, E edges, K kinds of edges, h columns.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints

_ZERO = np.float32(0.0)


@compiled
def send(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    own: Ints,
    to: Floats,
    of: Floats,
    bonds: Floats,
    sums: Floats,
) -> None:
    """Set `sums` [n, h] to each receiver's sum of messages.

    Parameters
    ----------
    weights : float32 [E]
        K times the number of an entry's edges, plus their kind.
    own : int32 [n]
        Each receiver's own row.
    to, of : float32 [p, h]
        What a row gives to messages as their receiver and as their sender.
    bonds : float32 [K, h]
        What a kind of edge gives.
    """
    for i in range(len(own)):
        line, receiver = sums[i], to[own[i]]
        line[:] = _ZERO
        for entry in range(pointers[i], pointers[i + 1]):
            number = int(weights[entry])
            sender, bond = of[columns[entry]], bonds[number % len(bonds)]
            count = np.float32(number // len(bonds))
            for j in range(len(line)):
                value = receiver[j] + sender[j] + bond[j]
                line[j] += _ZERO if value <= _ZERO else count * value


@compiled
def send_back(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    own: Ints,
    to: Floats,
    of: Floats,
    bonds: Floats,
    gradient: Floats,
    to_gradient: Floats,
    of_gradient: Floats,
    bonds_gradient: Floats,
) -> None:
    """Set the gradients of the rows' and edge kinds' parts of the messages.

    Parameters
    ----------
    pointers, columns, weights, own, to, of, bonds
        As for `send`.
    gradient : float32 [n, h]
        Of the sums.
    to_gradient, of_gradient, bonds_gradient : float32 [p, h], float32 [p, h], float32 [K, h]
        Of `to`, `of` and `bonds`; overwritten.
    """
    to_gradient[:] = _ZERO
    of_gradient[:] = _ZERO
    bonds_gradient[:] = _ZERO
    for i in range(len(own)):
        upstream, receiver, receiver_gradient = gradient[i], to[own[i]], to_gradient[own[i]]
        for entry in range(pointers[i], pointers[i + 1]):
            number, sender = int(weights[entry]), columns[entry]
            kind, count = number % len(bonds), np.float32(number // len(bonds))
            other, bond = of[sender], bonds[kind]
            other_gradient, bond_gradient = of_gradient[sender], bonds_gradient[kind]
            for j in range(len(upstream)):
                value = receiver[j] + other[j] + bond[j]
                passed = _ZERO if value <= _ZERO else count * upstream[j]
                receiver_gradient[j] += passed
                other_gradient[j] += passed
                bond_gradient[j] += passed


@compiled
def add_own(out: Floats, rows: Floats, own: Ints) -> None:
    """Add to row i of `out` [n, h] row ``own[i]`` of `rows` [p, h], and apply ReLU; NaN stays."""
    for i in range(len(own)):
        line, more = out[i], rows[own[i]]
        for j in range(len(line)):
            value = line[j] + more[j]
            line[j] = _ZERO if value <= _ZERO else value
