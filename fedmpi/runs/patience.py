"""When a run ends before its last round: its validation score no longer rises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric
from fedmpi.runs.reporting import RoundReport

STATE = "patience"
"""In a checkpoint: best score (higher is better), its round (0-based, -1: none), whether the run ended."""


class Patience:
    """Follows the headline's mean validation score on rank 0.

    The scores of a round arrive while the next one is under way. So the run ends with the round after
    `rounds` of them without a better score.

    Attributes
    ----------
    ended : bool
        Whether the run has ended.

    Parameters
    ----------
    rounds : int
        0: the run never ends early.
    metric : Metric
    """

    def __init__(self, rounds: int, metric: Metric) -> None:
        self._rounds, self._metric = rounds, metric
        self._best, self._round, self.ended = 0.0, -1, False

    def decide(self, round: int) -> bool:
        """Return whether the run ends with this round (0-based), from the scores of those before it."""
        self.ended = 0 < self._rounds < round - self._round and self._round >= 0
        return self.ended

    def note(self, report: RoundReport) -> None:
        """Take the scores of a round; clients that were not evaluated do not count."""
        if not self._rounds:
            return
        values = np.asarray(report.results[self._metric.field("val")])
        score = self._metric.sign * float(clients.mean_by_round(values.reshape(1, -1))[0])
        if not np.isnan(score) and (self._round < 0 or score > self._best):
            self._best, self._round = score, report.round

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a checkpoint holds of it; nothing where the run never ends early."""
        return {STATE: np.array([self._best, self._round, self.ended])} if self._rounds else {}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take what `state` returned."""
        if self._rounds:
            best, round, ended = arrays[STATE].tolist()
            self._best, self._round, self.ended = best, int(round), bool(ended)
