"""The plan of a round, made on rank 0 from what the clients reported of their training (step 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.message_layout import MessageLayout
from fedmpi.comm import reductions
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.server import Deciding
from fedmpi.programs.hooks import Hooks

Ints = npt.NDArray[np.int64]


class Planner:
    """Makes the plans of a run.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    layouts : (MessageLayout, MessageLayout)
        Of what participants send, and of what all clients get.
    samples, weights : int64 [clients]
        Training examples of each client, and what the algorithm makes of them.

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
        samples: Ints,
        weights: Ints,
    ) -> None:
        self._case, self._algorithm, self._layouts = case, algorithm, layouts
        self._samples, self._weights = samples, weights
        self._weighs = "weights" in algorithm.decides
        self.decided: Deciding | None = None

    @property
    def size(self) -> int:
        """Elements of a packed plan."""
        return (5 if self._weighs else 3) * len(self._samples) + 4

    def plan(
        self,
        round: int,
        group: Ints,
        gathered: Gathered,
        participants: Ints,
        *,
        lost: int,
        checkpoint: bool,
    ) -> RoundPlan:
        """Return the plan of a round.

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
            self._case,
            self._algorithm,
            self._layouts,
            round,
            gathered,
            group,
            participants,
            self._samples,
            self._weights,
        )
        exponent = np.full(len(group), reductions.ZERO_EXPONENT, np.int64)
        candidates = np.zeros_like(group)
        if failed < 0:
            self._algorithm.decide(decided)
            exponent = decided.exponents()
            candidates = self._candidates(round, decided.group, gathered)
        self.decided = decided
        stop = bool(gathered.headers[:, 0].any())
        plan = RoundPlan(decided.group, exponent, candidates, failed, lost, checkpoint or stop, stop)
        return replace(plan, weights=decided.weighted, divisor=decided.divisor) if self._weighs else plan

    def _candidates(self, round: int, group: Ints, gathered: Gathered) -> Ints:
        """Return 1 at place g if group g may split in this round, int64 [clients]."""
        candidates = np.zeros_like(group)
        if self._algorithm.splits:
            norms = {name: gathered[name] for name in ("delta_norm", "gradient_norm")}
            self._algorithm.splits.observe(norms)
            candidates[self._algorithm.splits.split_candidates(round, group, norms)] = 1
        return candidates
