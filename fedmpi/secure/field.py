"""The field of 2^31 - 1 elements: random vectors, exact products of matrices, Lagrange's polynomials."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PRIME = 2**31 - 1

Elements = npt.NDArray[np.uint32]
"""Numbers from 0 to PRIME - 1."""

_INNER = 64
"""Columns of the left side whose halves of 16 bits sum exactly in float64: 64 * 2^16 * 2^31 = 2^53."""

_BLOCK = 1 << 14
"""Columns of the right side that are worked on at once."""


def random_elements(size: int) -> Elements:
    """Return uniform elements from the operating system: 31 bits each, PRIME itself drawn again."""
    words = np.frombuffer(secrets.token_bytes(4 * size), np.uint32) >> np.uint32(1)
    words = words.astype(np.uint32)
    while len(again := np.flatnonzero(words == PRIME)):
        words[again] = np.frombuffer(secrets.token_bytes(4 * len(again)), np.uint32) >> np.uint32(1)
    return words


def product(left: Elements, right: Elements) -> Elements:
    """Return the product of two matrices [m, k] and [k, n] modulo PRIME."""
    result = np.zeros((len(left), right.shape[1]), np.uint64)
    for first in range(0, left.shape[1], _INNER):
        some = left[:, first : first + _INNER]
        high, low = (some >> 16).astype(np.float64), (some & 0xFFFF).astype(np.float64)
        for start in range(0, right.shape[1], _BLOCK):
            columns = slice(start, start + _BLOCK)
            block = right[first : first + _INNER, columns].astype(np.float64)
            upper = (high @ block).astype(np.uint64) % PRIME
            result[:, columns] += (upper << np.uint64(16)) + (low @ block).astype(np.uint64)
            result[:, columns] %= PRIME
    return result.astype(np.uint32)


def interpolation(known: Sequence[int], wanted: Sequence[int]) -> Elements:
    """Return the matrix [wanted, known] from a polynomial's values at some places to those at others.

    The polynomial's degree is below the number of known places, which are distinct; a row holds Lagrange's
    polynomials at one of the wanted places.
    """
    rows = []
    for place in wanted:
        row = []
        for own in known:
            above, below = 1, 1
            for other in known:
                if other != own:
                    above = above * (place - other) % PRIME
                    below = below * (own - other) % PRIME
            row.append(above * pow(below, -1, PRIME) % PRIME)
        rows.append(row)
    return np.array(rows, np.uint32).reshape(len(wanted), len(known))
