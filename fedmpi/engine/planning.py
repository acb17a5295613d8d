"""The plan of a round, made on rank 0 from what the clients reported of their training (step 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.comm import reductions
from fedmpi.engine.exchange import RoundPlan
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.messages import Gathered
from fedmpi.engine.weighing import weighted

Ints = npt.NDArray[np.int64]


class Planner:
    """Makes the plans of a run.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    samples : int64 [clients]
        Training examples of each client.
    """

    def __init__(self, case: Case, algorithm: Hooks, samples: Ints) -> None:
        self._case, self._algorithm, self._samples = case, algorithm, samples

    @property
    def size(self) -> int:
        """Elements of a packed plan."""
        return (5 if self._algorithm.reports is not None else 3) * len(self._samples) + 4

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
        exponent = np.full(len(group), reductions.ZERO_EXPONENT, np.int64)
        candidates = np.zeros_like(group)
        if failed < 0:
            if self._algorithm.regroups:
                reports = gathered.flags.reshape(len(group), -1)
                group = self._algorithm.regroups.group(self._case.seed, round, reports)
            mine = np.nan_to_num(gathered["exponent"][participants]).astype(np.int64)
            np.maximum.at(exponent, group[participants], mine)
            candidates = self._candidates(round, group, gathered)
        stop = bool(gathered.headers[:, 0].any())
        plan = RoundPlan(group, exponent, candidates, failed, lost, checkpoint or stop, stop)
        if self._algorithm.reports is None:
            return plan
        lr = self._case.optimizer.lr
        return weighted(plan, self._algorithm.reports, round, lr, gathered, participants, self._samples)

    def _candidates(self, round: int, group: Ints, gathered: Gathered) -> Ints:
        """Return 1 at place g if group g may split in this round, int64 [clients]."""
        candidates = np.zeros_like(group)
        if self._algorithm.splits:
            norms = {name: gathered[name] for name in ("delta_norm", "gradient_norm")}
            self._algorithm.splits.observe(norms)
            candidates[self._algorithm.splits.split_candidates(round, group, norms)] = 1
        return candidates
