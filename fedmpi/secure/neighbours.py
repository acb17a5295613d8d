"""Who shares masks with whom: everybody (SecAgg), or the neighbours in a random regular graph (SecAgg+)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Degree:
    """Neighbours of each client, and how many of their shares recover a secret."""

    neighbours: int
    threshold: int

    @classmethod
    def of(cls, neighbours: int, share: float) -> Degree:
        """Return that whose threshold is more than a share of a client and its neighbours, 2 at least."""
        least = math.floor(exactly(share) * (neighbours + 1)) + 1
        return cls(neighbours, max(min(least, neighbours + 1), 2))


def exactly(share: float) -> Fraction:
    """Return a share as it is written: 0.29 of 100 is 29, where the product of floats is less."""
    return Fraction(str(share))


def everybody(clients: Sequence[int]) -> dict[int, list[int]]:
    """Return all the others as each client's neighbours."""
    return {client: [other for other in clients if other != client] for client in clients}


def shuffled(clients: Sequence[int]) -> list[int]:
    """Return the clients in a random order drawn from the operating system."""
    order = list(clients)
    secrets.SystemRandom().shuffle(order)
    return order


def ring(order: Sequence[int], degree: int) -> dict[int, list[int]]:
    """Return Harary's graph of even `degree`: the nearest on both sides of a ring, ascending."""
    reach = degree // 2
    assert degree % 2 == 0 and degree < len(order)
    near = [distance for distance in range(-reach, reach + 1) if distance]
    return {
        client: sorted(order[(place + distance) % len(order)] for distance in near)
        for place, client in enumerate(order)
    }


@dataclass(frozen=True)
class Risk:
    """Bounds of the chances that a sum in a random Harary graph goes wrong (Bell et al. 2020, section 3.5).

    Attributes
    ----------
    exposed : float
        Somebody has `threshold` corrupt neighbours.
    parted : float
        The honest clients that stay are joined by corrupt ones only.
    stuck : float
        Somebody keeps fewer than `threshold` neighbours: no sum.
    """

    exposed: float
    parted: float
    stuck: float

    @classmethod
    def of(cls, clients: int, corrupt: float, dropouts: float, degree: Degree) -> Risk:
        """Return the bounds for a group of so many clients; the arguments are those of `least_degree`."""
        from scipy.stats import hypergeom  # takes a second to import

        bad, gone = math.ceil(corrupt * clients), math.ceil(dropouts * clients)
        others, below = clients - 1, degree.threshold - 1
        return cls(
            clients * float(hypergeom.sf(below, others, min(bad, others), degree.neighbours)),
            _parted(clients, corrupt + dropouts, degree.neighbours),
            clients * float(hypergeom.cdf(below, others, max(others - gone, 0), degree.neighbours)),
        )

    def is_safe(self, bits: int) -> bool:
        """Return whether nothing is learnt of a single update, but for a chance of 2^-bits."""
        return max(self.exposed, self.parted) <= 2.0**-bits


def _parted(clients: int, lost: float, degree: int) -> float:
    return clients * math.pow(lost, degree / 2)


SECURITY_BITS = 40
"""Chance of 2^-40 that a sum's ring is not safe."""


def least_degree(
    clients: int,
    corrupt: float,
    dropouts: float,
    security_bits: int = SECURITY_BITS,
    correctness_bits: int = 30,
) -> Degree | None:
    """Return the least degree that is safe for a group, but for the chances given; None if none is.

    Parameters
    ----------
    clients : int
    corrupt : float
        Share of the clients that work with the server.
    dropouts : float
        Share that may drop out.
    security_bits, correctness_bits : int
        See `Risk`: it is not safe with a chance of 2^-security_bits, stuck with one of 2^-correctness_bits.
    """
    for neighbours in range(2, clients, 2):
        if _parted(clients, corrupt + dropouts, neighbours) > 2.0**-security_bits:
            continue
        for threshold in range(neighbours // 2 + 1, neighbours + 1):
            degree = Degree(neighbours, threshold)
            risk = Risk.of(clients, corrupt, dropouts, degree)
            if risk.is_safe(security_bits) and risk.stuck <= 2.0**-correctness_bits:
                return degree
    return None
