"""The field of 2^31 - 1 elements: random vectors, exact products of matrices, Lagrange's polynomials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fedmpi.secure.keys import fresh_secret
from fedmpi.secure.masks import Stretcher

PRIME = 2**31 - 1

Elements = npt.NDArray[np.uint32]
"""Numbers from 0 to PRIME - 1."""

_INNER = 64
"""Columns of the left side whose halves of 16 bits sum exactly in float64: 64 * 2^16 * 2^31 = 2^53."""

_BLOCK = 1 << 14
"""Columns of the right side that are worked on at once."""


def random_elements(size: int) -> Elements:
    """Return uniform elements: 31 bits each of a mask of a fresh secret, PRIME itself drawn again."""
    words = Stretcher(size).mask(fresh_secret()) >> np.uint32(1)
    while len(again := np.flatnonzero(words == PRIME)):
        words[again] = random_elements(len(again))
    return words


def reduced(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers modulo PRIME; as 2^31 is 1 there, their upper bits are added to the lower ones."""
    for _ in range(3):  # from 2^64 to 2^34, to 2^31 + 7, to PRIME
        numbers = (numbers & np.uint64(PRIME)) + (numbers >> np.uint64(31))
    numbers[numbers == PRIME] = 0
    return numbers


def product(left: Elements, right: Elements) -> Elements:
    """Return the product of two matrices [m, k] and [k, n] modulo PRIME."""
    result = np.zeros((len(left), right.shape[1]), np.uint64)
    for first in range(0, left.shape[1], _INNER):
        some = left[:, first : first + _INNER]
        high, low = (some >> 16).astype(np.float64), (some & 0xFFFF).astype(np.float64)
        for start in range(0, right.shape[1], _BLOCK):
            columns = slice(start, start + _BLOCK)
            block = right[first : first + _INNER, columns].astype(np.float64)
            upper = reduced((high @ block).astype(np.uint64))
            sums = result[:, columns] + (upper << np.uint64(16)) + (low @ block).astype(np.uint64)
            result[:, columns] = reduced(sums)
    return result.astype(np.uint32)


def interpolation(known: Sequence[int], wanted: Sequence[int]) -> Elements:
    """Return the matrix [wanted, known] from a polynomial's values at some places to those at others.

    The polynomial's degree is below the number of known places, which are distinct; a row holds Lagrange's
    polynomials at one of the wanted places.
    """
    return _interpolation(tuple(known), tuple(wanted))


@lru_cache(maxsize=32)
def _interpolation(known: tuple[int, ...], wanted: tuple[int, ...]) -> Elements:
    below = [math.prod(own - other for other in known if other != own) % PRIME for own in known]
    rows = []
    for place in wanted:
        whole = math.prod(place - other for other in known) % PRIME
        divisors = [(place - own) * factor for own, factor in zip(known, below, strict=True)]
        unit = [int(own == place) for own in known]
        rows.append(unit if place in known else [whole * pow(each, -1, PRIME) % PRIME for each in divisors])
    matrix = np.array(rows, np.uint32).reshape(len(wanted), len(known))
    matrix.flags.writeable = False
    return matrix
