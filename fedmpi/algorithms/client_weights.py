"""The record field of algorithms that make a model for each client of all participants' models."""

from __future__ import annotations

from fedmpi.algorithms.base import Fields, Floats
from fedmpi.algorithms.program import Server
from fedmpi.algorithms.recorded import pairs_field, record_pairs

CLIENT_WEIGHTS = "client_weights"


def weights_field(num_clients: int) -> Fields:
    """Return the field of the weights; none for many clients."""
    meaning = "share of each client's model (last axis) in a client's next one; NaN for clients that sat out"
    return pairs_field(CLIENT_WEIGHTS, meaning, num_clients)


def mix(server: Server, weights: Floats) -> None:
    """Mix the participants' models by weights [k, k], and record these."""
    record_pairs(server, CLIENT_WEIGHTS, [(server.participants, server.mix(weights))])
