"""The field of 2^31 - 1 elements: random vectors, exact products of matrices, Lagrange's polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from fedmpi.secure.keys import fresh_secret
from fedmpi.secure.masks import Stretcher

PRIME = 2**31 - 1

Elements = npt.NDArray[np.uint32]
"""Numbers from 0 to PRIME - 1."""

_INNER = 64
"""Columns of the left side whose halves of 16 bits sum exactly in float64: 64 * 2^16 * 2^31 = 2^53."""

_BLOCK = 1 << 11
"""Columns of the right side that are worked on at once: what is made of them stays in the cache."""

Wide = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def random_elements(size: int) -> Elements:
    """Return uniform elements, a fresh secret of the operating system stretched to 31 bits each.

    PRIME itself is drawn again.
    """
    words = Stretcher(size).mask(fresh_secret())
    words >>= np.uint32(1)
    while len(again := np.flatnonzero(words == PRIME)):
        words[again] = random_elements(len(again))
    return words


def product(left: Elements, right: Elements) -> Elements:
    """Return the product of two matrices [m, k] and [k, n] modulo PRIME."""
    cuts = [left[:, first : first + _INNER] for first in range(0, left.shape[1], _INNER)]
    halves = [((cut >> 16).astype(np.float64), (cut & 0xFFFF).astype(np.float64)) for cut in cuts]
    result = np.empty((len(left), right.shape[1]), np.uint32)
    with _blas().limit(limits=1, user_api="blas"):  # threads spin where other ranks need the cores
        for start in range(0, right.shape[1], _BLOCK):
            columns = slice(start, start + _BLOCK)
            result[:, columns] = _block_product(halves, right[:, columns].astype(np.float64))
    return result


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _block_product(halves: Sequence[tuple[Floats, Floats]], block: Floats) -> Wide:
    """Return the product of a left side, in its halves, and a block of columns, modulo PRIME."""
    total = np.zeros((len(halves[0][0]), block.shape[1]), np.int64)
    for place, (high, low) in enumerate(halves):
        rows = block[_INNER * place : _INNER * (place + 1)]
        upper = (high @ rows).astype(np.int64)
        _fold(upper)
        upper <<= 16
        total += upper
        total += (low @ rows).astype(np.int64)
        _fold(total)
    _fold(total)
    total[total == PRIME] = 0
    return total


def _fold(values: Wide) -> None:
    """Bring values below 2^62 to 32 bits, in place: 2^31 is 1 modulo PRIME."""
    carried = values >> 31
    values &= PRIME
    values += carried


def interpolation(known: Sequence[int], wanted: Sequence[int]) -> Elements:
    """Return the matrix [wanted, known] from a polynomial's values at some places to those at others.

    The polynomial's degree is below the number of known places, which are distinct; a row holds Lagrange's
    polynomials at one of the wanted places, none of which is known.
    """
    return _interpolation(tuple(known), tuple(wanted))


@lru_cache(maxsize=32)
def _interpolation(known: tuple[int, ...], wanted: tuple[int, ...]) -> Elements:
    assert not set(known) & set(wanted)
    places, others = np.array(known, np.int64), np.array(wanted, np.int64)
    apart = (others[:, None] - places) % PRIME
    between = (places[:, None] - places) % PRIME
    np.fill_diagonal(between, 1)
    above, below = _row_products(apart), _row_products(between)
    matrix = (above[:, None] * _inverses(apart * below % PRIME) % PRIME).astype(np.uint32)
    matrix.flags.writeable = False
    return matrix


def _row_products(values: Wide) -> Wide:
    """Return the product of each row."""
    product = np.ones(len(values), np.int64)
    for column in values.T:
        product = product * column % PRIME
    return product


def _inverses(values: Wide) -> Wide:
    """Return the inverse of each element: its power PRIME - 2, whose 31 bits are set but for the second."""
    inverse = values
    for bit in range(29, -1, -1):
        inverse = inverse * inverse % PRIME
        if bit != 1:
            inverse = inverse * values % PRIME
    return inverse
