"""Estimates from a few seeds: standard errors, intervals, and spreads that are alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Figure = Callable[[Float], Float]
"""From values [..., n] of clients to figures [...]."""

LEVEL_OF_SPREADS = 0.2
"""Methods whose spreads Bartlett's test calls different at this level keep their own. It is high because
the test rarely objects with few seeds, and because pooling what differs misjudges, where not pooling leaves
undecided."""

_MOST_ENUMERATED = 8
_DRAWN = 10_000
_DIGITS = 12


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, which Student's t takes account of.

    Attributes
    ----------
    value : float
    error : float
        Standard error; NaN where nothing tells it.
    count : int
        Repetitions.
    freedom : float
        Degrees of freedom of the error.
    fixed : float
        Part of the error that further repetitions leave: a published figure's own.
    """

    value: float
    error: float
    count: int
    freedom: float
    fixed: float = 0.0

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval; NaN where nothing tells it."""
        from scipy.special import stdtrit  # scipy.stats takes a second to import

        return float(stdtrit(self.freedom, 0.975)) * self.error if self.freedom else math.nan

    @property
    def std(self) -> float:
        """Standard deviation between repetitions, as far as the figure is a mean over them."""
        return self.error * math.sqrt(self.count)

    def after(self, count: int) -> Estimate:
        """Return the same figure after more repetitions, if they deviate as these do."""
        ours = max(0.0, self.error**2 - self.fixed**2) * self.count / count
        freedom = self.freedom * (count - 1) / max(1, self.count - 1)
        return replace(self, error=math.sqrt(ours + self.fixed**2), count=count, freedom=freedom)

    def tail(self, distance: float) -> float:
        """Return the probability that chance alone moves the figure up by at least `distance`."""
        from scipy.special import stdtr

        if math.isinf(distance) or self.error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stdtr(self.freedom, -distance / self.error)) if self.freedom else 1.0

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
        if spread is None:
            fixed = self.error * math.sqrt(self.count / repetitions)
            error = self.error * math.sqrt(1 + self.count / repetitions)
            return Estimate(self.value - published, error, self.count, self.freedom, fixed)
        ours, theirs = self.error**2, spread**2 / repetitions
        freedom = self.freedom
        if freedom and theirs:
            freedom = (ours + theirs) ** 2 / (ours**2 / freedom + theirs**2 / (repetitions - 1))
        error, fixed = math.sqrt(ours + theirs), math.sqrt(theirs)
        return Estimate(self.value - published, error, self.count, freedom, fixed)

    def __str__(self) -> str:
        return self._with_interval("")

    @property
    def signed(self) -> str:
        """The same with the sign of differences."""
        return self._with_interval("+")

    def _with_interval(self, sign: str) -> str:
        text = f"{round(self.value, 4) + 0.0:{sign}.4f}"  # no -0.0
        return text if math.isnan(self.half) else f"{text} ± {self.half:.4f}"


def mean(values: Float) -> Estimate:
    """Return the mean of repetitions [n]; its error is their standard deviation (ddof 1) / root of n."""
    count = len(values)
    value = round(float(values.mean()), _DIGITS)
    if count < 2:
        return Estimate(value, math.nan, count, 0)
    return Estimate(value, round(float(values.std(ddof=1)) / math.sqrt(count), _DIGITS), count, count - 1)


def bootstrap(values: Float, figure: Figure, floor: float = 0.0) -> Estimate:
    """Return a figure of the means over repetitions that is no mean, with its error by bootstrap over these.

    Up to 8 repetitions every resample counts, with its probability; beyond, 10,000 are drawn, always the
    same. The variance is scaled by n / (n - 1), as a mean's. Figures are rounded to 12 digits: what is
    printed shall not hang on the order of a sum.

    Parameters
    ----------
    values : float64 [n, k]
        One row per repetition.
    figure : callable
        Of the means [..., k]: a minimum, a share, a ratio.
    floor : float
        Least standard error, for figures that move in steps.
    """
    count = len(values)
    value = round(float(figure(values.mean(axis=0))), _DIGITS)
    if count < 2:
        return Estimate(value, math.nan, count, 0)
    counts, weights = _resamples(count)
    figures = figure(counts @ values / count)
    expected = float(weights @ figures)
    variance = float(weights @ (figures - expected) ** 2) * count / (count - 1)
    # Exactly equal repetitions have no error, whatever the sums of the weights are rounded to.
    alike = bool((values == values[0]).all())
    error = 0.0 if alike else round(math.sqrt(variance), _DIGITS)
    return Estimate(value, max(floor, error), count, count - 1)


def _resamples(count: int) -> tuple[Float, Float]:
    """Return how often each repetition is in each resample [m, count], and the resamples' weights [m]."""
    if count > _MOST_ENUMERATED:
        draws = np.random.RandomState(0).multinomial(count, [1 / count] * count, size=_DRAWN)
        return draws.astype(np.float64), np.full(_DRAWN, 1 / _DRAWN)
    drawn = list(combinations_with_replacement(range(count), count))
    counts = np.array([np.bincount(each, minlength=count) for each in drawn[::-1]], np.float64)
    ways = [math.factorial(count) / math.prod(math.factorial(int(c)) for c in row) for row in counts]
    return counts, np.array(ways) / count**count


def bartlett(estimates: Sequence[Estimate | None]) -> float:
    """Return Bartlett's p-value of means whose repetitions deviate alike; NaN with fewer than two spreads.

    Methods with the same figure and error are the same runs and count once. The test takes the scores of
    a method for normal and also objects where they are not, which errs on the safe side: they keep their own.
    """
    from scipy.special import chdtrc

    known = _distinct(estimates)
    if len(known) < 2:
        return math.nan
    freedoms, variances = [one.freedom for one in known], [one.std**2 for one in known]
    if min(variances) == 0:
        return 1.0 if max(variances) == 0 else 0.0
    freedom, pooled = sum(freedoms), _pooled_variance(known)
    pairs = list(zip(freedoms, variances, strict=True))
    distance = freedom * math.log(pooled) - sum(each * math.log(variance) for each, variance in pairs)
    correction = 1 + (sum(1 / each for each in freedoms) - 1 / freedom) / (3 * (len(known) - 1))
    return float(chdtrc(len(known) - 1, max(0.0, distance) / correction))


def pool(estimates: Sequence[Estimate | None]) -> list[Estimate | None]:
    """Return the same means with the errors that they have if all deviate alike between repetitions.

    Five repetitions tell a standard deviation to a factor of two only; those of several methods on the
    same data tell it together, unless `bartlett` objects: then each keeps its own.
    """
    known = _distinct(estimates)
    if not known or bartlett(estimates) <= LEVEL_OF_SPREADS:
        return list(estimates)
    variance, freedom = _pooled_variance(known), sum(one.freedom for one in known)
    return [
        None if one is None else replace(one, error=math.sqrt(variance / one.count), freedom=freedom)
        for one in estimates
    ]


def _distinct(estimates: Sequence[Estimate | None]) -> list[Estimate]:
    known = {(one.value, one.error): one for one in estimates if one is not None and one.freedom}
    return list(known.values())


def _pooled_variance(estimates: Sequence[Estimate]) -> float:
    return sum(one.freedom * one.std**2 for one in estimates) / sum(one.freedom for one in estimates)
