"""The record field of algorithms that make a model for each client of all participants' models."""

from __future__ import annotations

import numpy as np

from fedmpi.algorithms.base import Floats
from fedmpi.algorithms.program import Server
from fedmpi.store.schema import Field

CLIENT_WEIGHTS = "client_weights"

_MOST_RECORDED = 256
"""Clients beyond which the weights are not recorded: they take clients^2 numbers a round."""


def weights_field(num_clients: int) -> tuple[Field, ...]:
    """Return the field of the weights; none for many clients."""
    if num_clients > _MOST_RECORDED:
        return ()
    meaning = "share of each client's model (last axis) in a client's next one; NaN for clients that sat out"
    return (Field(CLIENT_WEIGHTS, ("round", "client", "client"), "f8", "1", meaning, "result"),)


def mix(server: Server, weights: Floats) -> None:
    """Mix the participants' models by weights [k, k], and record these where `weights_field` is given."""
    shares, clients = server.mix(weights), len(server.group)
    if clients <= _MOST_RECORDED:
        found = np.full((clients, clients), np.nan)
        found[np.ix_(server.participants, server.participants)] = shares
        server.record(CLIENT_WEIGHTS, found)
