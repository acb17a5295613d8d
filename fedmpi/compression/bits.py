"""Whole numbers of few bits, one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.seeds import words

Bytes = npt.NDArray[np.uint8]


def packed_size(count: int, bits: int) -> int:
    """Return the bytes of so many numbers."""
    return -(-count * bits // 8)


def pack(values: npt.NDArray[Any], bits: int) -> Bytes:
    """Return numbers below ``2**bits`` (at most 16) as bytes [`packed_size`]."""
    pairs = values.astype("<u2")[:, None].view(np.uint8)
    return np.packbits(np.unpackbits(pairs, axis=1, count=bits, bitorder="little"), bitorder="little")


def unpack(sent: Bytes, count: int, bits: int) -> npt.NDArray[np.int64]:
    """Return the numbers that `pack` made bytes of, int64 [count]."""
    places = np.unpackbits(sent, count=count * bits, bitorder="little").reshape(count, bits)
    numbers: npt.NDArray[np.int64] = places @ (1 << np.arange(bits, dtype=np.int64))
    return numbers


def uniform(stream: int, count: int) -> npt.NDArray[np.float64]:
    """Return numbers of a stream in [0, 1), float64 [count]."""
    return (words(stream, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
