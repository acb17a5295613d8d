"""What a client tells of its graphs, and how alike two clients are by it (FedCCH, section 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Floats

Words = npt.NDArray[np.uint64]

BITS = 64
"""Bits of a signature: 8 bytes on the wire."""


def average_hash(values: Floats) -> np.uint64:
    """Return the average hash of a vector: bit d is 1 where element d is above the vector's mean.

    An image's average hash has 8 x 8 bits, hence presumably the paper's hidden width of 64. An element
    that equals the mean gives 0, which the paper leaves open. The hash does not change with the scale of
    the vector, so neither sum pooling nor the graphs' sizes matter to it.

    Parameters
    ----------
    values : float64 [h]
        At most `BITS` of them.
    """
    bits = values > values.mean()
    return np.uint64(sum(1 << int(place) for place in np.flatnonzero(bits)))


def hash_similarity(signatures: Words, width: int) -> Floats:
    """Return 1 minus the share of bits that differ (Eq. 11), float64 [m, m].

    The printed Eq. 12 gives 1 off the diagonal, a matrix of ones; meant is this one, 1 on the diagonal.

    Parameters
    ----------
    signatures : uint64 [m]
    width : int
        Bits in use.
    """
    differing = np.bitwise_count(signatures[:, None] ^ signatures[None, :])
    similarity: Floats = 1.0 - differing / width
    return similarity


def cosine_similarity(rows: npt.NDArray[Any]) -> Floats:
    """Return the cosines of vectors [m, h], float64 [m, m]; 1 on the diagonal, 0 beside a zero vector."""
    unit = unit_rows(rows)
    similarity: Floats = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return similarity


def unit_rows(rows: npt.NDArray[Any]) -> Floats:
    """Return vectors [m, h] at length 1; a zero vector stays."""
    wide = np.asarray(rows, np.float64)
    norms = np.sqrt(np.sum(wide * wide, axis=1, keepdims=True))
    unit: Floats = wide / np.where(norms > 0, norms, 1.0)
    return unit


def bit_rows(signatures: Words, width: int) -> Floats:
    """Return the bits of signatures as numbers 0 and 1, float64 [m, width]."""
    places = np.arange(width, dtype=np.uint64)
    return ((signatures[:, None] >> places) & np.uint64(1)).astype(np.float64)
