"""The record field of algorithms that make a model for each client of all participants' models."""

from __future__ import annotations

from fedmpi.algorithms.capabilities import CLIENT_WEIGHTS
from fedmpi.store.schema import Field

_MOST_RECORDED = 256
"""Clients beyond which the weights are not recorded: they take clients^2 numbers a round."""


def weights_field(num_clients: int) -> tuple[Field, ...]:
    """Return the field of the weights, which the engine fills; none for many clients."""
    if num_clients > _MOST_RECORDED:
        return ()
    meaning = "share of each client's model (last axis) in a client's next one; NaN for clients that sat out"
    return (Field(CLIENT_WEIGHTS, ("round", "client", "client"), "f8", "1", meaning, "result"),)
