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

_BLOCK = 1 << 13
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
    """Return the product of two matrices [m, k] and [k, n] modulo PRIME, for k below 2^16.

    Integers, row by row: a BLAS would take floats, and more threads than a rank has cores.
    """
    assert len(right) < 1 << 16
    result = np.empty((len(left), right.shape[1]), np.uint32)
    high, low = (left >> np.uint32(16)).astype(np.uint64), (left & np.uint32(0xFFFF)).astype(np.uint64)
    for start in range(0, right.shape[1], _BLOCK):
        columns = slice(start, start + _BLOCK)
        block = right[:, columns].astype(np.uint64)
        for row in range(len(left)):
            upper = reduced(_combination(high[row], block)) << np.uint64(16)
            result[row, columns] = reduced(upper + _combination(low[row], block))
    return result


def _combination(factors: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the sum of rows [k, n] times factors [k]: of 16 and 31 bits, so that 2^16 of them fit."""
    total = np.zeros(rows.shape[1], np.uint64)
    term = np.empty_like(total)
    for factor, row in zip(factors, rows, strict=True):
        np.multiply(row, factor, out=term)
        total += term
    return total


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
