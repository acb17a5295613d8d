"""Spreads between repetitions: of figures that are no means, and of methods that deviate alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from fedmpi.judging.estimates import Estimate, Float

Figure = Callable[[Float], Float]
"""From values [..., n] of clients to figures [...]."""

LEVEL_OF_SPREADS = 0.2
"""Methods whose spreads Bartlett's test calls different at this level keep their own. It is high because
the test rarely objects with few seeds, and because pooling what differs misjudges, where not pooling leaves
undecided."""

_MOST_ENUMERATED = 8
_DRAWN = 10_000


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
    value = float(figure(values.mean(axis=0)))
    if count < 2:
        return Estimate(value).rounded()
    counts, weights = _resamples(count)
    figures = figure(counts @ values / count)
    expected = float(weights @ figures)
    variance = float(weights @ (figures - expected) ** 2) * count / (count - 1)
    # Exactly equal repetitions have no error, whatever the sums of the weights are rounded to.
    alike = bool((values == values[0]).all())
    error = 0.0 if alike else math.sqrt(variance)
    return Estimate(value, max(floor, error), count, count - 1).rounded()


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
    known = {(one.mean, one.error): one for one in estimates if one is not None and one.freedom}
    return list(known.values())


def _pooled_variance(estimates: Sequence[Estimate]) -> float:
    return sum(one.freedom * one.std**2 for one in estimates) / sum(one.freedom for one in estimates)
