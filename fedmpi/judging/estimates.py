"""Means of independent values, such as those of seeds: errors, intervals, tails, p-values of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
"""Error of a mean, relative to it, below which all values are the same but for rounding."""

_DIGITS = 12


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, which Student's t takes account of; by default a single value.

    Attributes
    ----------
    mean : float
        The mean, or another figure of means (see `fedmpi.judging.spreads.bootstrap`).
    error : float
        Standard error; NaN where nothing tells it.
    count : int
        Values, such as repetitions.
    freedom : float
        Degrees of freedom of the error.
    fixed : float
        Part of the error that further repetitions leave: a published figure's own.
    """

    mean: float
    error: float = math.nan
    count: int = 1
    freedom: float = 0
    fixed: float = 0.0

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval; NaN where nothing tells it."""
        return _quantile(self.freedom) * self.error if self.freedom else math.nan

    @property
    def std(self) -> float:
        """Standard deviation between repetitions, as far as the figure is a mean over them."""
        return self.error * math.sqrt(self.count)

    @property
    def tells(self) -> bool:
        """Whether there are values enough, and they differ: those that do not have no measure of chance."""
        return self.count >= FEWEST and self.error > _DUST * abs(self.mean)

    @property
    def p_value(self) -> float:
        """Chance of a mean this far from 0, either way, if the true one is 0; NaN where nothing tells it."""
        return 2 * self.tail(abs(self.mean)) if self.tells else math.nan

    def tail(self, distance: float) -> float:
        """Return the probability that chance alone moves the figure up by at least `distance`."""
        from scipy.special import stdtr

        if math.isinf(distance) or self.error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stdtr(self.freedom, -distance / self.error)) if self.freedom else 1.0

    def after(self, count: int) -> Estimate:
        """Return the same figure after more repetitions, if they deviate as these do."""
        ours = max(0.0, self.error**2 - self.fixed**2) * self.count / count
        freedom = self.freedom * (count - 1) / max(1, self.count - 1)
        return replace(self, error=math.sqrt(ours + self.fixed**2), count=count, freedom=freedom)

    def against(self, published: float, repetitions: int, spread: float | None = None) -> Estimate:
        """Return the difference to a published figure of so many repetitions.

        Parameters
        ----------
        published : float
        repetitions : int
        spread : float, optional
            Standard deviation of the published figure between its repetitions: Welch's error, with
            Welch's and Satterthwaite's degrees of freedom. By default it is taken to deviate as ours does.
        """
        ours, freedom = self.error**2, self.freedom
        theirs = ours * self.count / repetitions if spread is None else spread**2 / repetitions
        if spread is not None and freedom and theirs:
            freedom = (ours + theirs) ** 2 / (ours**2 / freedom + theirs**2 / (repetitions - 1))
        error, fixed = math.sqrt(ours + theirs), math.sqrt(theirs)
        return Estimate(self.mean - published, error, self.count, freedom, fixed)

    def rounded(self) -> Estimate:
        """Return the same to 12 digits: what is printed shall not hang on the order of a sum."""
        return replace(self, mean=round(self.mean, _DIGITS), error=round(self.error, _DIGITS))

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
        if self.mean == 0 and (self.error == 0 or self.count == 1):
            return THE_SAME
        if self.count < FEWEST:
            return (f"no {of}", f"one {of} only", f"two {of}s only")[self.count]
        if not (counted or self.tells):
            return "no spread"
        if (2 * self.tail(abs(self.mean)) if p_value is None else p_value) >= LEVEL:
            return "undecided"
        return "better" if higher == (self.mean > 0) else "worse"

    def __str__(self) -> str:
        return self._with_interval("")

    @property
    def signed(self) -> str:
        """The same with the sign of differences."""
        return self._with_interval("+")

    def _with_interval(self, sign: str) -> str:
        text = f"{round(self.mean, 4) + 0.0:{sign}.4f}"  # no -0.0
        return text if math.isnan(self.half) else f"{text} ± {self.half:.4f}"


def estimate(values: npt.ArrayLike) -> Estimate:
    """Return the mean of independent values, NaN left out, with its standard error (ddof 1)."""
    given = np.asarray(values, np.float64).ravel()
    given = given[~np.isnan(given)]
    count = len(given)
    if count < 2:
        return Estimate(float(given[0]) if count else math.nan, count=count)
    return Estimate(float(given.mean()), float(given.std(ddof=1)) / math.sqrt(count), count, count - 1)


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


def corrected(differences: Sequence[Estimate | None]) -> list[float]:
    """Return p-values of no difference after Holm over those that tell one; NaN of the others."""
    p_values = [math.nan if one is None else one.p_value for one in differences]
    asked = [place for place, p_value in enumerate(p_values) if not math.isnan(p_value)]
    for place, adjusted in zip(asked, holm([p_values[place] for place in asked]), strict=True):
        p_values[place] = adjusted
    return p_values


def half_widths(values: Float) -> Float:
    """Return half the widths of the 95 % intervals of means over the first axis, which has two or more."""
    return np.asarray(_quantile(len(values) - 1) * values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, 0.975))


def least_significant(differences: Sequence[float], count: int, comparisons: int) -> float:
    """Return the least mean difference that is significant at the first step of Holm's correction.

    Parameters
    ----------
    differences : sequence of float
        Between two sides, paired, which tell the standard deviation s; NaN is returned for fewer than two.
    count : int
        So many differences n are averaged.
    comparisons : int
        So many are corrected for.

    Returns
    -------
    float
        t s / sqrt(n), t the two-sided quantile of Student's distribution of n - 1 degrees of freedom.
    """
    from scipy.special import stdtrit  # takes a second to import

    if len(differences) < 2:
        return math.nan
    quantile = float(stdtrit(count - 1, 1 - LEVEL / (2 * comparisons)))
    return quantile * float(np.std(differences, ddof=1)) / math.sqrt(count)
