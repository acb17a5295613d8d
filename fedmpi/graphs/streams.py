"""Elements of the streams of `fedmpi.seeds`, compiled: any element on its own, and dropout's masks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]


class Drop(NamedTuple):
    """How dropout reads a stream: see `fedmpi.seeds.keep_bits`.

    Attributes
    ----------
    bits, threshold : int
        An element takes so many bits (1, 8 or 32) and is kept if they are at least `threshold`.
    scale : float32
        What is kept is multiplied by this: 1 / (1 - p).
    """

    bits: int
    threshold: int
    scale: np.float32


@compiled
def word(stream: np.uint64, number: np.uint64) -> np.uint64:
    """Return element `number` of a SplitMix64 stream, as `fedmpi.seeds.words` does."""
    state = stream + (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def draw_factors(
    stream: np.uint64, drop: Drop, first: int, rows: int, columns: int, words: Words, out: Floats, at: int
) -> None:
    """Set rows ``at ..`` of `out` to 0 where an element is dropped, else to dropout's scale.

    Parameters
    ----------
    first, rows, columns : int
        The elements are those of rows ``first ..`` of a matrix with so many columns.
    words : uint64 [>= rows * columns / 2 + 2]
        Scratch.
    out : float32 [*, >= columns]
    """
    if drop.threshold == 0:
        out[at : at + rows, :] = np.float32(1.0)
        return
    per_word = 64 // drop.bits
    low = first * columns // per_word
    skip = first * columns - low * per_word
    for number in range((skip + rows * columns + per_word - 1) // per_word):
        words[number] = word(stream, np.uint64(low + number))
    if drop.bits == 32:
        _compare(words.view(np.uint32), np.uint32(drop.threshold), drop.scale, skip, rows, columns, out, at)
    elif drop.bits == 8:
        _compare(words.view(np.uint8), np.uint8(drop.threshold), drop.scale, skip, rows, columns, out, at)
    else:
        for i in range(rows):
            for j in range(columns):
                place = np.uint64(skip + i * columns + j)
                bit = (words[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)
                out[at + i, j] = np.float32(bit) * drop.scale


@compiled
def _compare(
    cells: np.ndarray,
    threshold: np.unsignedinteger,
    scale: np.float32,
    skip: int,
    rows: int,
    columns: int,
    out: Floats,
    at: int,
) -> None:
    """Do so for elements of whole cells; `skip` cells come before the first."""
    for i in range(rows):
        start, line = skip + i * columns, out[at + i]
        for j in range(columns):
            line[j] = scale if cells[start + j] >= threshold else np.float32(0.0)
