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
from fedmpi.graphs.simd import add_bits
from fedmpi.graphs.streams import word


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
def drop(x: Floats, row_of: Ints, kept: np.ndarray, scale: float, out: Floats) -> None:
    """Set row q of `out` to row ``row_of[q]`` of `x`, times how many of its members kept each element.

    Parameters
    ----------
    x : float32 [n, h]
    row_of : int32 [Q]
    kept : uint8 or uint16 [Q, h]
    scale : float
        1 / (1 - p).
    out : float32 [Q, h]
    """
    factor = np.float32(scale)
    for q in range(len(row_of)):
        source, counts, target = x[row_of[q]], kept[q], out[q]
        for j in range(x.shape[1]):
            target[j] = source[j] * (np.float32(counts[j]) * factor)


@compiled
def dropout_backward(
    pointers: Ints,
    columns: Ints,
    weights: Floats,
    gradient: Floats,
    row_of: Ints,
    kept: np.ndarray,
    scale: float,
    x: Floats,
    out: Floats,
) -> None:
    """Add to `out` the gradient of what was dropped, from that of what follows.

    Row q gets the rows that read it, ``M gradient``, times its dropout factors,
    and adds them to row ``row_of[q]`` where the activation `x` is above 0.

    Parameters
    ----------
    pointers, columns, weights
        The transposed matrix M [Q, p] of the layer that follows.
    gradient : float32 [p, h]
    x, out : float32 [n, h]
    """
    factor = np.float32(scale)
    line = np.empty((1, gradient.shape[1]), np.float32)
    for q in range(len(row_of)):
        combine(pointers, columns, weights, gradient, q, 1, line, 0)
        active, counts, target = x[row_of[q]], kept[q], out[row_of[q]]
        for j in range(gradient.shape[1]):
            value = line[0, j] * (np.float32(counts[j]) * factor)
            target[j] += np.float32(0.0) if active[j] <= 0.0 else value


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
            out[start : start + count] = tile[:count]
        else:
            add_transposed_times(tile, 0, count, summed, start, first_gradient)
            rows_times(tile, 0, count, first, out, start)


@compiled
def cross_entropy(
    logits: Floats, labels: np.ndarray, classes: int, gradient: Floats, losses: np.ndarray, hits: np.ndarray
) -> None:
    """Set the rows' negative log-likelihoods, the gradient of their mean, and which rows are right.

    Parameters
    ----------
    logits, gradient : float32 [B, >= classes]
    labels : int64 [B]
    losses : float64 [B]
    hits : uint8 [B]
        Set to 1 where the largest logit (the first of equals) is the label's.
    """
    for b in range(len(labels)):
        best = 0
        for c in range(1, classes):
            if logits[b, c] > logits[b, best]:
                best = c
        hits[b] = 1 if best == labels[b] else 0
        top, norm = np.float64(logits[b, best]), 0.0
        for c in range(classes):
            norm += np.exp(np.float64(logits[b, c]) - top)
        for c in range(classes):
            share = np.exp(np.float64(logits[b, c]) - top) / norm
            share -= 1.0 if c == labels[b] else 0.0
            gradient[b, c] = np.float32(share / len(labels))
        losses[b] = np.log(norm) + top - np.float64(logits[b, labels[b]])


@compiled
def count_kept(
    stream: np.uint64, bits: int, threshold: int, pointers: Ints, members: Ints, hidden: int, out: np.ndarray
) -> None:
    """Count per class and column how many members keep their element; the masks of `fedmpi.seeds.keep_bits`.

    Parameters
    ----------
    stream : uint64
        Key of the layer's stream; member i's elements start at ``i * hidden``.
    bits, threshold : int
        An element takes so many bits of the stream (1, 8 or 32) and is kept if they
        are at least `threshold`.
    pointers, members : int32 [Q + 1], int32 [N]
    out : uint8 or uint16 [Q, >= hidden]
    """
    if bits == 1 and hidden % 64 == 0:
        _count_single_bits(stream, pointers, members, hidden // 64, out)
        return
    if threshold == 0:
        for q in range(len(pointers) - 1):
            out[q, :] = pointers[q + 1] - pointers[q]
        return
    per_word, low = 64 // bits, np.uint64((1 << bits) - 1)
    for q in range(len(pointers) - 1):
        counts = out[q]
        for j in range(len(counts)):
            counts[j] = 0
        for m in range(pointers[q], pointers[q + 1]):
            start = members[m] * hidden
            j = 0
            while j < hidden:
                number, skip = (start + j) // per_word, (start + j) % per_word
                cells = word(stream, np.uint64(number)) >> np.uint64(bits * skip)
                stop = min(hidden, j + per_word - skip)
                for place in range(stop - j):
                    cell = (cells >> np.uint64(bits * place)) & low
                    counts[j + place] += 1 if cell >= np.uint64(threshold) else 0
                j = stop


@compiled
def _count_single_bits(stream: np.uint64, pointers: Ints, members: Ints, words: int, out: np.ndarray) -> None:
    """Count as `count_kept`, where every element takes one bit and a member takes whole words."""
    for q in range(len(pointers) - 1):
        out[q, :] = 0
        for m in range(pointers[q], pointers[q + 1]):
            first = np.int64(members[m]) * words
            for w in range(words):
                add_bits(word(stream, np.uint64(first + w)), out, q * out.shape[1] + 64 * w)
