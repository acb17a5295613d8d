"""Algorithms ranked on several datasets: average ranks, Friedman's test, Nemenyi's critical difference.

Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, sections 3.2.2, 3.2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEVEL = 0.05
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """How k algorithms compare over N datasets.

    Attributes
    ----------
    average : float64 [k]
        Ranks, 1 for the best; ties share theirs.
    critical_difference : float
        Average ranks that differ by less are not told apart at `LEVEL`.
    p : float
        Of Friedman's test, that all algorithms are alike; 1 where all tie on every dataset.
    datasets : int
    """

    average: Floats
    critical_difference: float
    p: float
    datasets: int


def ranking(ranks: Floats) -> Ranking:
    """Return what ranks on several datasets say.

    Parameters
    ----------
    ranks : float64 [N, k]
        Of three algorithms or more, on two datasets or more.
    """
    from scipy.special import chdtrc
    from scipy.stats import studentized_range  # takes a second to import

    datasets, algorithms = ranks.shape
    average = ranks.mean(axis=0)
    quantile = float(studentized_range.ppf(1 - LEVEL, algorithms, math.inf)) / math.sqrt(2)
    critical = quantile * math.sqrt(algorithms * (algorithms + 1) / (6 * datasets))
    spread = ((ranks - (algorithms + 1) / 2) ** 2).sum() / (datasets * (algorithms - 1))
    between = ((average - (algorithms + 1) / 2) ** 2).sum()
    statistic = datasets * between / spread if spread > 0 else 0.0  # with Conover's correction for ties
    return Ranking(average, critical, float(chdtrc(algorithms - 1, statistic)), datasets)
