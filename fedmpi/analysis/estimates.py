"""Means of independent values with their intervals, and Holm's correction for several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]

LEVEL = 0.05
"""Of a decision: the chance of an error that intervals of 95 % leave."""

FEWEST = 3
"""With fewer values nothing is decided: two that happen to be alike would."""

THE_SAME = "the same"
"""Verdict where no value differs from the reference's."""

_DUST = 1e-9
"""Half an interval, relative to its mean, below which all values are the same but for rounding."""


@dataclass(frozen=True)
class Estimate:
    """A mean of `count` values with half the width of its 95 % interval (Student's t); NaN for one value."""

    mean: float
    half: float
    count: int

    @property
    def p_value(self) -> float:
        """Chance of a mean this far from 0, either way, if the true one is 0; NaN where nothing tells it."""
        if not self._tells:
            return math.nan
        from scipy.special import stdtr

        freedom = self.count - 1
        return 2 * float(stdtr(freedom, -abs(self.mean) / self.half * _quantile(freedom)))

    @property
    def _tells(self) -> bool:
        """Whether there are values enough, and they differ: those that do not have no measure of chance."""
        return self.count >= FEWEST and self.half > _DUST * abs(self.mean)

    def verdict(
        self, higher: bool = True, p_value: float | None = None, counted: bool = False, of: str = "pair"
    ) -> str:
        """Return what differences from a reference say: they decide where their interval excludes 0.

        Fewer than `FEWEST` decide nothing, nor do differences of scores that are all the same.

        Parameters
        ----------
        higher : bool
            Whether more is better.
        p_value : float, optional
            Decides in place of the interval: that of several estimates after Holm.
        counted : bool, optional
            They are no scores but costs, which may be the same in every run: the interval alone decides.
        of : str
            What each is a difference of.
        """
        if self.mean == 0 and (self.half == 0 or self.count == 1):
            return THE_SAME
        if self.count < FEWEST:
            return (f"no {of}", f"one {of} only", f"two {of}s only")[self.count]
        if not (counted or self._tells):
            return "no spread"
        if not (abs(self.mean) > self.half if p_value is None else p_value < LEVEL):
            return "undecided"
        return "better" if higher == (self.mean > 0) else "worse"


def estimate(values: npt.ArrayLike) -> Estimate:
    """Return the mean of independent values, NaN left out, with its interval."""
    given = np.asarray(values, np.float64).ravel()
    given = given[~np.isnan(given)]
    if len(given) < 2:
        return Estimate(float(given[0]) if len(given) else math.nan, math.nan, len(given))
    return Estimate(float(given.mean()), float(half_widths(given)), len(given))


def half_widths(values: Float) -> Float:
    """Return half the widths of the 95 % intervals of means over the first axis, which has two or more."""
    return np.asarray(_quantile(len(values) - 1) * values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def _quantile(freedom: int) -> float:
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, 0.975))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979).

    Rejecting those below a level keeps the chance of even one false rejection
    among all of them below that level, however they depend on one another.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    found = np.empty(len(order))
    found[order] = np.maximum.accumulate(np.minimum(adjusted, 1.0))
    return list(found.tolist())
