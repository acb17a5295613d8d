"""Who shares masks with whom: everybody (SecAgg), or the neighbours in a random regular graph (SecAgg+)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Degree:
    """Neighbours of each client, and how many of their shares recover a secret."""

    neighbours: int
    threshold: int


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


def least_degree(
    clients: int, corrupt: float, dropouts: float, security_bits: int = 40, correctness_bits: int = 30
) -> Degree | None:
    """Return the least degree that is safe for a group (Bell et al. 2020, section 3.5); None if none is.

    Of a random Harary graph, but for a chance of 2^-security_bits: nobody has `threshold` corrupt
    neighbours, and the honest clients that stay are connected. But for a chance of 2^-correctness_bits
    everybody keeps `threshold` neighbours.

    Parameters
    ----------
    clients : int
    corrupt : float
        Share of the clients that work with the server.
    dropouts : float
        Share that may drop out.
    """
    from scipy.stats import hypergeom  # takes a second to import

    bad, gone = math.ceil(corrupt * clients), math.ceil(dropouts * clients)
    others = clients - 1
    for degree in range(2, others + 1, 2):
        if clients * (corrupt + dropouts) ** (degree / 2) > 2.0**-security_bits:
            continue
        for threshold in range(degree // 2 + 1, degree + 1):
            exposed = clients * float(hypergeom.sf(threshold - 1, others, min(bad, others), degree))
            stay = max(others - gone, 0)
            stuck = clients * float(hypergeom.cdf(threshold - 1, others, stay, degree))
            if exposed <= 2.0**-security_bits and stuck <= 2.0**-correctness_bits:
                return Degree(degree, threshold)
    return None
