"""Compiled passes of a whole GIN without normalisation, but for its head; see `fedmpi.kernels.gin_network`.

Shapes: L layers, h columns (the hidden width, padded), B graphs; of a `Quotient` K0 feature rows, K1
first-layer classes and Q twin classes, and R = max(K1, Q). All float arrays are float32 and C-contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedmpi.graphs.csr import Entries
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints, combine
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels.dropout_loops import drop, dropout_backward
from fedmpi.kernels.gin_loops import convolve, convolve_back
from fedmpi.kernels.linear_map import Linear, add_gradients_by_columns, apply


class Matrices(NamedTuple):
    """What of a `Quotient` the passes read, with the transposed matrices."""

    inputs: Floats
    first: Entries
    closed: Entries
    pooling: Entries
    first_back: Entries
    closed_back: Entries
    pooling_back: Entries
    first_of: Ints
    member_ptr: Ints
    members: Ints


class Maps(NamedTuple):
    """The two linear maps of every layer, one behind the other, and their gradients.

    Attributes
    ----------
    weights, transposed, weight_gradients : float32 [2 L, h, h]
    biases, bias_gradients : float32 [2 L, h]
    """

    weights: Floats
    transposed: Floats
    weight_gradients: Floats
    biases: Floats
    bias_gradients: Floats


class Room(NamedTuple):
    """What a training step keeps.

    Attributes
    ----------
    rows : float32 [K0, h]
        Rows of the inputs, then their gradient.
    summed, inner, out : float32 [L, R or more, h]
        What `convolve` keeps, and its output.
    kept : uint16 [L, Q or more, h]
    dropped : float32 [Q, h]
    gradient, upstream : float32 [R or more, h]
    """

    rows: Floats
    summed: Floats
    inner: Floats
    out: Floats
    kept: np.ndarray
    dropped: Floats
    gradient: Floats
    upstream: Floats


@compiled
def load(parameters: Floats, starts: np.ndarray, hidden: int, maps: Maps) -> None:
    """Take over the parameters of all layers, and set the gradients to 0.

    Parameters
    ----------
    parameters : float32 [length]
    starts : int64 [2 L, 2]
        Where weight and bias of each map begin.
    hidden : int
        Columns without padding.
    maps : Maps
    """
    for number in range(len(starts)):
        weight, bias = starts[number, 0], starts[number, 1]
        for i in range(hidden):
            for j in range(hidden):
                value = parameters[weight + i * hidden + j]
                maps.weights[number, i, j] = value
                maps.transposed[number, j, i] = value
            maps.biases[number, i] = parameters[bias + i]
    maps.weight_gradients[:] = np.float32(0.0)
    maps.bias_gradients[:] = np.float32(0.0)


@compiled
def store(maps: Maps, starts: np.ndarray, hidden: int, gradient: Floats) -> None:
    """Write the gradients of all layers to the model's; arguments as for `load`."""
    for number in range(len(starts)):
        weight, bias = starts[number, 0], starts[number, 1]
        for i in range(hidden):
            for j in range(hidden):
                gradient[weight + i * hidden + j] = maps.weight_gradients[number, i, j]
            gradient[bias + i] = maps.bias_gradients[number, i]


@compiled
def forward(
    batch: Matrices,
    pre: Linear,
    maps: Maps,
    streams: Words,
    how: Drop,
    hidden: int,
    room: Room,
    pooled: Floats,
) -> None:
    """Set the sums over each graph's nodes of what dropout leaves of the last layer, and what `back` needs.

    Parameters
    ----------
    batch : Matrices
    pre : Linear
        Map of the inputs.
    maps : Maps
    streams : uint64 [>= L]
        Keys of the layers' dropout.
    how : Drop
    hidden : int
        Columns without padding.
    room : Room
    pooled : float32 [B, h]
    """
    apply(batch.inputs, pre.transposed, pre.bias, room.rows, False)
    own, added, none = np.arange(len(room.dropped)).astype(np.int32), np.zeros((1, 1), np.float32), _no_rows()
    pointers, columns, weights = batch.first
    row_of, x = batch.first_of, room.rows
    for layer in range(len(room.kept)):
        if layer > 0:
            pointers, columns, weights = batch.closed
            row_of, x = own, room.dropped
        count, first, second = len(pointers) - 1, 2 * layer, 2 * layer + 1
        out = room.out[layer, :count]
        convolve(
            pointers, columns, weights, x, maps.transposed[first], maps.biases[first],
            maps.transposed[second], maps.biases[second], room.summed[layer, :count],
            room.inner[layer, :count], out, True, added, none, False,
        )  # fmt: skip
        drop(
            streams, layer, how, batch.member_ptr, batch.members, hidden, out, row_of, room.kept[layer],
            room.dropped,
        )  # fmt: skip
    pointers, columns, weights = batch.pooling
    combine(pointers, columns, weights, room.dropped, 0, len(pooled), pooled, 0)


@compiled
def back(batch: Matrices, pre: Linear, maps: Maps, how: Drop, room: Room, gradient: Floats) -> None:
    """Add to the gradients of all maps, from that of what `forward` pooled.

    Parameters
    ----------
    batch, pre, maps, how, room
        As of `forward`.
    gradient : float32 [B, h]
    """
    own, added, none = np.arange(len(room.dropped)).astype(np.int32), np.zeros((1, 1), np.float32), _no_rows()
    pointers, columns, weights = batch.pooling_back
    upstream = gradient
    for layer in range(len(room.kept) - 1, -1, -1):
        count = len(batch.closed[0]) - 1 if layer > 0 else len(batch.first[0]) - 1
        row_of, first, second = own if layer > 0 else batch.first_of, 2 * layer, 2 * layer + 1
        of_out, result = room.gradient[:count], room.upstream[:count]
        dropout_backward(
            pointers, columns, weights, upstream, row_of, room.kept[layer], how.scale,
            room.out[layer, :count], of_out,
        )  # fmt: skip
        convolve_back(
            of_out, room.inner[layer, :count], room.summed[layer, :count], maps.weights[first],
            maps.weights[second], maps.weight_gradients[first], maps.bias_gradients[first],
            maps.weight_gradients[second], maps.bias_gradients[second], result, added, none, False,
        )  # fmt: skip
        upstream = result
        pointers, columns, weights = batch.closed_back if layer > 0 else batch.first_back
    combine(pointers, columns, weights, upstream, 0, len(room.rows), room.rows, 0)
    add_gradients_by_columns(room.rows, batch.inputs, pre.weight_gradient, pre.bias_gradient)


@compiled
def _no_rows() -> Ints:
    return np.zeros(0, np.int32)
