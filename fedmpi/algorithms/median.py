"""Coordinate-wise median: the server takes the median of the clients' updates in each coordinate.

Yin, Chen, Ramchandran and Bartlett, "Byzantine-robust distributed learning: towards optimal statistical
rates", ICML 2018, Definition 1 and Algorithm 1, option I. There clients send gradients; here they send
the updates of their local training. All participants count alike, however many graphs they have.
"""

from __future__ import annotations

import numpy as np

from fedmpi.algorithms.base import Floats, Rows
from fedmpi.algorithms.robust import Robust


class Median(Robust):
    """One global model that moves by the median; of an even number, the mean of the two in the middle."""

    name = "median"
    paper = "Yin et al., ICML 2018, Algorithm 1, option I"

    def aggregate(self, rows: Rows, trained: int) -> Floats:
        """Return the median of each coordinate."""
        ordered, half = ascending(rows), len(rows) // 2
        median: Floats = (ordered[half] + ordered[-half - 1]) / 2
        return median


def ascending(rows: Rows) -> Floats:
    """Return each coordinate's values in ascending order, float64 [k, shared]."""
    return np.sort(rows, axis=0).astype(np.float64)
