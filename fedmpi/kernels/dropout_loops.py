"""Compiled dropout on rows that each stand for several nodes; see `fedmpi.kernels.dropout`.

Shapes: n rows before dropout, Q rows after it, h columns (the hidden width, padded). All float arrays are
float32 and C-contiguous.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import TILE, Floats, Ints, combine
from fedmpi.graphs.simd import add_bits
from fedmpi.graphs.streams import Drop, Words, word


@compiled
def drop(
    streams: Words,
    number: int,
    how: Drop,
    pointers: Ints,
    members: Ints,
    hidden: int,
    x: Floats,
    row_of: Ints,
    kept: np.ndarray,
    out: Floats,
) -> None:
    """Set row q of `out` to row ``row_of[q]`` of `x`, times how many of its members kept each element.

    Parameters
    ----------
    streams : uint64 [layers]
        Keys of the streams.
    number : int
        Of the layer: which stream. Member i's elements start at ``i * hidden``.
    how : Drop
    pointers, members : int32 [Q + 1], int32 [N]
    x : float32 [n, h]
    row_of : int32 [Q]
    kept : uint8 or uint16 [Q, h]
        Set to how many members keep each element: the masks of `fedmpi.seeds.keep_bits`, counted.
    out : float32 [Q, h]
    """
    for first in range(0, len(row_of), TILE):
        count = min(TILE, len(row_of) - first)
        if how.bits == 1 and hidden % 32 == 0:
            _count_bits(streams[number], pointers, members, hidden, first, count, kept)
        else:
            _count_cells(streams[number], how, pointers, members, hidden, first, count, kept)
        for q in range(first, first + count):
            source, counts, target = x[row_of[q]], kept[q], out[q]
            for j in range(x.shape[1]):
                target[j] = source[j] * (np.float32(counts[j]) * how.scale)


@compiled
def _count_cells(
    stream: np.uint64,
    how: Drop,
    pointers: Ints,
    members: Ints,
    hidden: int,
    first: int,
    count: int,
    kept: np.ndarray,
) -> None:
    """Set `count` rows of `kept`, from row `first` on."""
    per_word, low = 64 // how.bits, np.uint64((1 << how.bits) - 1)
    for q in range(first, first + count):
        counts = kept[q]
        if how.threshold == 0:
            counts[:] = pointers[q + 1] - pointers[q]
            continue
        counts[:] = 0
        for m in range(pointers[q], pointers[q + 1]):
            start, j = members[m] * hidden, 0
            while j < hidden:
                number, skip = (start + j) // per_word, (start + j) % per_word
                cells = word(stream, np.uint64(number)) >> np.uint64(how.bits * skip)
                stop = min(hidden, j + per_word - skip)
                for place in range(stop - j):
                    cell = (cells >> np.uint64(how.bits * place)) & low
                    counts[j + place] += 1 if cell >= np.uint64(how.threshold) else 0
                j = stop


@compiled
def _count_bits(
    stream: np.uint64, pointers: Ints, members: Ints, hidden: int, first: int, count: int, kept: np.ndarray
) -> None:
    """Do so where every element takes one bit, and a member a multiple of 32."""
    for q in range(first, first + count):
        kept[q, :] = 0
        for m in range(pointers[q], pointers[q + 1]):
            start, at = np.int64(members[m]) * hidden, q * kept.shape[1]
            if hidden % 64 == 0:
                for j in range(0, hidden, 64):
                    add_bits(word(stream, np.uint64((start + j) // 64)), kept, at + j)
            else:
                for j in range(0, hidden, 32):
                    bits = word(stream, np.uint64((start + j) // 64)) >> np.uint64((start + j) % 64)
                    add_bits(np.uint32(bits), kept, at + j)


@compiled
def dropout_backward(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    gradient: Floats,
    row_of: Ints,
    kept: np.ndarray,
    scale: np.float32,
    x: Floats,
    out: Floats,
) -> None:
    """Set `out` to the gradient of what was dropped, from that of what follows.

    Row q gets the rows that read it, ``M gradient``, times its dropout factors,
    and adds them to row ``row_of[q]`` where the activation `x` is above 0.

    Parameters
    ----------
    pointers, columns, weights
        The transposed matrix M [Q, p] of the layer that follows.
    gradient : float32 [p, h]
    row_of, kept
        As `drop` had them.
    scale : float32
        1 / (1 - p).
    x, out : float32 [n, h]
    """
    tile = np.empty((TILE, gradient.shape[1]), np.float32)
    alone = len(row_of) == len(out)  # each row is that of one class
    if not alone:
        out[:] = np.float32(0.0)
    for first in range(0, len(row_of), TILE):
        count = min(TILE, len(row_of) - first)
        combine(pointers, columns, weights, gradient, first, count, tile, 0)
        for i in range(count):
            row = row_of[first + i]
            line, active, counts, target = tile[i], x[row], kept[first + i], out[row]
            for j in range(gradient.shape[1]):
                value = line[j] * (np.float32(counts[j]) * scale)
                value = np.float32(0.0) if active[j] <= 0.0 else value
                target[j] = value if alone else target[j] + value
