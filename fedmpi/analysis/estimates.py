"""Means of independent values with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean of `count` values with half the width of its 95 % interval (Student's t); NaN for one value."""

    mean: float
    half: float
    count: int

    def verdict(self, higher: bool = True) -> str:
        """Return what the interval of differences from a reference says: it decides where it excludes 0.

        `higher` says whether more is better.
        """
        if self.mean == 0 and not self.half > 0:
            return "the same"
        if math.isnan(self.half):
            return "one pair only" if self.count else "no pair"
        if abs(self.mean) <= self.half:
            return "undecided"
        return "better" if higher == (self.mean > 0) else "worse"


def estimate(values: npt.ArrayLike) -> Estimate:
    """Return the mean of independent values, NaN left out, with its interval."""
    given = np.asarray(values, np.float64).ravel()
    given = given[~np.isnan(given)]
    if len(given) < 2:
        return Estimate(float(given[0]) if len(given) else math.nan, math.nan, len(given))
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    quantile = float(stdtrit(len(given) - 1, 0.975))
    return Estimate(
        float(given.mean()), quantile * float(given.std(ddof=1)) / math.sqrt(len(given)), len(given)
    )
