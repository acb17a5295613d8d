"""Coordinate-wise trimmed mean: in each coordinate the largest and the smallest updates are left out.

Yin, Chen, Ramchandran and Bartlett, "Byzantine-robust distributed learning: towards optimal statistical
rates", ICML 2018, Definition 2 and Algorithm 1, option II. There clients send gradients; here they send
the updates of their local training. All participants count alike, however many graphs they have.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions, Floats, Rows
from fedmpi.algorithms.median import ascending
from fedmpi.algorithms.robust import Robust


class TrimmedMeanOptions(AlgorithmOptions):
    """Options of the trimmed mean."""

    name: Literal["trimmed-mean"] = "trimmed-mean"
    beta: float = Field(0.1, ge=0, lt=0.5)
    """Share of the participants that is left out at each end, rounded down to clients."""


class TrimmedMean(Robust):
    """One global model that moves by the mean of what is left in each coordinate."""

    name = "trimmed-mean"
    paper = "Yin et al., ICML 2018, Algorithm 1, option II"
    Options = TrimmedMeanOptions
    options: TrimmedMeanOptions

    def remark(self, participants: int, one_step: bool) -> str:
        """Say that so few participants lose none of their number."""
        if self._left_out(participants):
            return ""
        return (
            f"beta = {self.options.beta} of {participants} participants leaves out nobody: this is the mean"
        )

    def _left_out(self, participants: int) -> int:
        """Return how many are left out at each end."""
        return int(self.options.beta * participants + 1e-9)  # 0.29 * 100 is 28.999999999999996

    def aggregate(self, rows: Rows, trained: int) -> Floats:
        """Return the trimmed mean of each coordinate, added in ascending order."""
        left_out = self._left_out(len(rows))
        ordered = ascending(rows)[left_out : len(rows) - left_out]
        mean: Floats = np.add.reduce(ordered, axis=0) / len(ordered)
        return mean
