"""Step 4 of a round: rank 0 plans from what clients reported, and all ranks answer what its program asks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedmpi.algorithms.program import Ints, Request
from fedmpi.client.deltas import Row, on_host
from fedmpi.comm import reductions
from fedmpi.exchange.aggregation import Aggregation, Deltas, Groups
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.server import Deciding, Known

REQUESTS = ("", "means", "weighted means", "rows", "parameters")
"""Kinds of `program.Request`; a plan has the place."""

Rows = Callable[[Ints, Deltas, int], Mapping[int, Row] | None]


@dataclass(frozen=True)
class Answers:
    """Answers the requests of plans, on rank 0 from all ranks.

    Parameters
    ----------
    rows : callable
        Returns some clients' updates, float32 [elements], on rank 0; None elsewhere (a collective call).
    parameters : Aggregation or None
        Of the shared parameters, without running statistics; None: nobody asks for means.
    trained, size : int
        Shared parameters, and elements of an update.
    samples : int64 [clients]
        Training examples of each client.
    """

    rows: Rows
    parameters: Aggregation | None
    trained: int
    size: int
    samples: Ints

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
        if kind in ("rows", "parameters"):
            size = self.size if kind == "rows" else self.trained
            rows = self.rows(places, deltas, size)
            return None if rows is None else np.stack([rows[int(client)] for client in places])
        assert self.parameters is not None
        weights = self.samples if kind == "weighted means" else np.ones_like(self.samples)
        wanted = places.tolist()
        if self.parameters.secret:  # a client that is alone keeps its update
            wanted = [group for group in wanted if np.count_nonzero(plan.group == group) > 1]
        groups = Groups(plan.group, plan.exponent, dict.fromkeys(wanted, 0), steps=plan.steps)
        held = {number: on_host(delta) for number, delta in deltas.items()}
        return self.parameters.means(groups, participants, weights, held)


class Planner:
    """Makes the plans of a run.

    Attributes
    ----------
    decided : Deciding or None
        What the algorithm decided in the last round that was planned.
    """

    def __init__(self, known: Known) -> None:
        self._known, self._weighs = known, "weights" in known.algorithm.decides
        self.decided: Deciding | None = None

    @property
    def size(self) -> int:
        """Elements of a packed plan."""
        return RoundPlan.size(len(self._known.samples), weighs=self._weighs)

    def plans(
        self,
        round: int,
        group: Ints,
        gathered: Gathered,
        participants: Ints,
        *,
        lost: int,
        checkpoint: bool,
        ended: bool = False,
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
        ended : bool
            Whether the run ends with this round, because its scores no longer rise.
        """
        broken = participants[gathered["finite"][participants] != 1.0]
        failed = int(broken[0]) if len(broken) else -1
        decided = Deciding(self._known, round, gathered, group, participants)
        stop = bool(gathered.headers[:, 0].any()) and not ended
        nothing = np.full(len(group), reductions.ZERO_EXPONENT, np.int64)
        plan = RoundPlan(group, nothing, np.zeros_like(group), failed, lost, checkpoint or stop, stop, ended)
        if self._weighs:
            plan = replace(plan, weights=decided.weighted, divisor=decided.divisor)
        if failed < 0:
            plan = yield from self._decided(decided, plan)
        self.decided = decided
        yield plan

    def _decided(self, decided: Deciding, plan: RoundPlan) -> Generator[RoundPlan, Any, RoundPlan]:
        """Run the server's program, and return the plan that it leads to."""

        def planned(places: Any, weights: Any, kind: str = "") -> RoundPlan:
            marks = np.zeros_like(plan.group)
            marks[places] = 1
            exponent, request = decided.exponents(weights), REQUESTS.index(kind)
            return replace(plan, group=decided.group, exponent=exponent, marks=marks, request=request)

        def asking(request: Request) -> RoundPlan:
            by_samples = self._weighs and request.kind == "weighted means"
            return planned(request.places, self._known.samples if by_samples else None, request.kind)

        conversation, answer = self._known.algorithm.decide(decided), None
        while True:
            try:
                request = conversation.send(answer)
            except StopIteration:
                break
            answer = (yield asking(request)) if len(request.places) else decided.nothing(request)
        if decided.mixed is not None:
            decided.blend((yield asking(Request("rows", decided.participants))))
        return planned(list(decided.moves), decided.weighted if self._weighs else None)
