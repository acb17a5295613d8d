"""Base of methods that make a model for each client of all participants' models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm, Fields, Floats
from fedmpi.algorithms.program import Server
from fedmpi.algorithms.recorded import pairs_field, record_pairs

_WEIGHTS = "client_weights"
_MEANING = "share of each client's model (last axis) in a client's next one; NaN for clients that sat out"


class Mixing(Algorithm):
    """A model for each client, by weights of all participants' models; the record has these."""

    decides = frozenset({"mixes"})

    def decide(self, server: Server) -> None:
        """Mix the participants' models."""
        weights = server.mix(self.mixed(server.messages))
        record_pairs(server, _WEIGHTS, [(server.participants, weights)])

    @abstractmethod
    def mixed(self, messages: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return the weights of k participants' models in each other's next one, [k, k].

        Parameters
        ----------
        messages : mapping of str to array [k, ...]
            What they sent.
        """

    def fields(self, num_clients: int) -> Fields:
        """Return the weights of the clients' models."""
        return pairs_field(_WEIGHTS, _MEANING, num_clients)
