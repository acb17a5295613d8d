"""Shamir's secret sharing (1979): `threshold` shares give the secret, fewer say nothing of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

PRIME = 2**256 + 297
"""The smallest prime above every secret of 32 bytes."""

SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, places: Sequence[int]) -> dict[int, bytes]:
    """Return a share of 33 bytes by place.

    Parameters
    ----------
    secret : bytes [32]
    threshold : int
        Shares that it takes to have the secret back.
    places : sequence of int
        Where the polynomial is evaluated: distinct, from 1.
    """
    assert len(secret) == SECRET_BYTES
    values = polynomial_values(int.from_bytes(secret, "big"), threshold, places)
    return {place: value.to_bytes(SHARE_BYTES, "big") for place, value in values.items()}


def combine(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret from exactly `threshold` of its shares or more.

    Raises
    ------
    ValueError
        The shares do not belong to one secret of 32 bytes.
    """
    secret = value_at_zero({place: int.from_bytes(share, "big") for place, share in shares.items()})
    if secret.bit_length() > 8 * SECRET_BYTES:
        raise ValueError("the shares are not of one secret")
    return secret.to_bytes(SECRET_BYTES, "big")


def polynomial_values(
    secret: int, threshold: int, places: Sequence[int], prime: int = PRIME
) -> dict[int, int]:
    """Evaluate a random polynomial of degree `threshold` - 1, with the secret at 0, modulo `prime`."""
    assert 1 <= threshold <= len(places) and len(set(places)) == len(places) and min(places) >= 1
    return evaluate([secret, *(secrets.randbelow(prime) for _ in range(threshold - 1))], places, prime)


def evaluate(coefficients: Sequence[int], places: Sequence[int], prime: int) -> dict[int, int]:
    """Return the values of a polynomial, its constant coefficient first, modulo `prime`."""
    values = {}
    for place in places:
        value = 0
        for coefficient in reversed(coefficients):
            value = value * place + coefficient
        values[place] = value % prime  # once: a place has few bits
    return values


def value_at_zero(values: Mapping[int, int], prime: int = PRIME) -> int:
    """Interpolate a polynomial at 0, modulo `prime`."""
    weights = _weights_at_zero(tuple(values), prime)
    return sum(value * weight for value, weight in zip(values.values(), weights, strict=True)) % prime


@lru_cache(maxsize=256)
def _weights_at_zero(places: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """Return Lagrange's polynomials at 0; a server has many secrets from the same clients."""
    weights = []
    for place in places:
        above, below = 1, 1
        for other in places:
            if other != place:
                above = above * other % prime
                below = below * (other - place) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return tuple(weights)
