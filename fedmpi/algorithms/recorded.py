"""Fields of the record that methods add, and matrices of a number for every two clients in it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedmpi.algorithms.base import Fields, Floats, Ints
from fedmpi.algorithms.program import Server
from fedmpi.store.schema import Field

_MOST_CLIENTS = 256
"""Clients beyond which matrices are not recorded: they take clients^2 numbers a round."""


def field(name: str, meaning: str, axes: tuple[str, ...] = ("round", "client"), dtype: str = "f8") -> Field:
    """Return a field of results without a unit."""
    return Field(name, axes, dtype, "1", meaning, "result")


def pairs_field(name: str, meaning: str, num_clients: int) -> Fields:
    """Return the field of a matrix, float64 [clients, clients]; none for many clients."""
    return (field(name, meaning, ("round", "client", "client")),) if num_clients <= _MOST_CLIENTS else ()


def record_pairs(server: Server, name: str, blocks: Iterable[tuple[Ints, Floats]]) -> None:
    """Record the matrix of a `pairs_field`, if there is one: blocks of clients [m], [m, m]; NaN between."""
    clients = len(server.group)
    if clients <= _MOST_CLIENTS:
        matrix = np.full((clients, clients), np.nan)
        for members, values in blocks:
            matrix[np.ix_(members, members)] = values
        server.record(name, matrix)
