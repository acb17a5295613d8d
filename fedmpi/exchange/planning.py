"""The plans of a round, made on rank 0 from what the clients reported of their training (step 4)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from fedmpi.algorithms.program import Ints, Request
from fedmpi.case.schema import Case
from fedmpi.client.message_layout import MessageLayout
from fedmpi.comm import reductions
from fedmpi.exchange.answers import REQUESTS
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.server import Clients, Deciding
from fedmpi.programs.hooks import Hooks


class Planner:
    """Makes the plans of a run.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    layouts : (MessageLayout, MessageLayout)
        Of what participants send, and of what all clients get.
    clients : Clients

    Attributes
    ----------
    decided : Deciding or None
        What the algorithm decided in the last round that was planned.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        layouts: tuple[MessageLayout, MessageLayout],
        clients: Clients,
    ) -> None:
        self._case, self._algorithm, self._layouts, self._clients = case, algorithm, layouts, clients
        self._weighs = "weights" in algorithm.decides
        self.decided: Deciding | None = None

    @property
    def size(self) -> int:
        """Elements of a packed plan."""
        return RoundPlan.size(len(self._clients.samples), weighs=self._weighs)

    def plans(
        self,
        round: int,
        group: Ints,
        gathered: Gathered,
        participants: Ints,
        *,
        lost: int,
        checkpoint: bool,
    ) -> Generator[RoundPlan, Any, None]:
        """Yield a plan for each request of the server's program, which is sent the answer; then the round's.

        Parameters
        ----------
        round : int
            0-based.
        group : int64 [clients]
            Group of each client in the round before.
        gathered : Gathered
            The training table.
        participants : int64 [k]
        lost : int
            First client whose scores of the round before are not finite; -1 when all are.
        checkpoint : bool
            Whether one is due.
        """
        broken = participants[gathered["finite"][participants] != 1.0]
        failed = int(broken[0]) if len(broken) else -1
        decided = Deciding(
            self._case, self._algorithm, self._layouts, round, gathered, group, participants, self._clients
        )
        stop = bool(gathered.headers[:, 0].any())
        nothing = np.full(len(group), reductions.ZERO_EXPONENT, np.int64)
        plan = RoundPlan(group, nothing, np.zeros_like(group), failed, lost, checkpoint or stop, stop)
        if self._weighs:
            plan = replace(plan, weights=decided.weighted, divisor=decided.divisor)
        if failed < 0:
            plan = yield from self._decided(decided, plan)
        self.decided = decided
        yield plan

    def _decided(self, decided: Deciding, plan: RoundPlan) -> Generator[RoundPlan, Any, RoundPlan]:
        """Run the server's program, and return the plan that it leads to."""

        def asking(request: Request) -> RoundPlan:
            marks = np.zeros_like(plan.group)
            marks[request.places] = 1
            by_samples = self._weighs and request.kind == "weighted means"
            exponent = decided.exponents(self._clients.samples if by_samples else None)
            kind = REQUESTS.index(request.kind)
            return replace(plan, group=decided.group, exponent=exponent, marks=marks, request=kind)

        conversation, answer = self._algorithm.decide(decided), None
        while True:
            try:
                request = conversation.send(answer)
            except StopIteration:
                break
            answer = (yield asking(request)) if len(request.places) else decided.nothing(request)
        if decided.mixed is not None:
            decided.blend((yield asking(Request("rows", decided.participants))))
        marks = np.zeros_like(plan.group)
        marks[list(decided.moves)] = 1
        exponent = decided.exponents(decided.weighted if self._weighs else None)
        return replace(plan, group=decided.group, exponent=exponent, marks=marks)
