"""What the server's program asks for between the reports and the averages of a round (step 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedmpi.client.deltas import on_host
from fedmpi.comm.collectives import Collectives
from fedmpi.exchange.aggregation import Aggregation, Deltas, Groups, Ints, gather_rows
from fedmpi.exchange.group_models import RoundPlan

REQUESTS = ("", "means", "weighted means", "rows", "parameters")
"""Kinds of `program.Request`; a plan has the place."""


class Answers:
    """Answers the requests of plans, on rank 0 from all ranks.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    parameters : Aggregation or None
        Of the shared parameters, without running statistics; None: nobody asks for means.
    trained, size : int
        Shared parameters, and elements of an update.
    samples : int64 [clients]
        Training examples of each client.
    """

    def __init__(
        self,
        collectives: Collectives,
        hosts: Ints,
        parameters: Aggregation | None,
        trained: int,
        size: int,
        samples: Ints,
    ) -> None:
        self._collectives, self._hosts = collectives, hosts
        self._parameters, self._samples = parameters, samples
        self._sizes = {"rows": size, "parameters": trained}

    def answer(self, plan: RoundPlan, participants: Ints, deltas: Deltas) -> Any:
        """Return the answer, as `program.Server` has it, on rank 0 (a collective call).

        Parameters
        ----------
        plan : RoundPlan
            With a request.
        participants : int64 [k]
        deltas : mapping of client to float32 [size]
            Of the participants that this rank hosts.
        """
        kind, places = REQUESTS[plan.request], np.flatnonzero(plan.marks)
        if kind in self._sizes:
            rows = gather_rows(self._collectives, self._hosts, places, deltas, self._sizes[kind])
            return None if rows is None else np.stack([rows[int(client)] for client in places])
        assert self._parameters is not None
        weights = self._samples if kind == "weighted means" else np.ones_like(self._samples)
        wanted = places.tolist()
        if self._parameters.secret:  # a client that is alone keeps its update
            wanted = [group for group in wanted if np.count_nonzero(plan.group == group) > 1]
        groups = Groups(plan.group, plan.exponent, dict.fromkeys(wanted, 0), steps=plan.steps)
        held = {number: on_host(delta) for number, delta in deltas.items()}
        return self._parameters.means(groups, participants, weights, held)
