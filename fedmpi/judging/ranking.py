"""Algorithms ranked on several datasets: average ranks, Friedman's test, Nemenyi's critical difference.

Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, sections 3.2.2, 3.2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.judging.estimates import LEVEL, Float


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

    average: Float
    critical_difference: float
    p: float
    datasets: int


def ranks(scores: npt.ArrayLike) -> Float:
    """Return ranks, 1 for the highest score; equal scores share theirs, NaN the last ones."""
    from scipy.stats import rankdata  # takes a second to import

    given = np.asarray(scores, np.float64)
    return np.asarray(rankdata(-np.where(np.isnan(given), -math.inf, given)))


def ranking(ranks: Float) -> Ranking:
    """Return what ranks on several datasets say.

    Parameters
    ----------
    ranks : float64 [N, k]
        Of three algorithms or more, on two datasets or more.
    """
    from scipy.stats import friedmanchisquare, studentized_range

    datasets, algorithms = ranks.shape
    quantile = float(studentized_range.ppf(1 - LEVEL, algorithms, math.inf)) / math.sqrt(2)
    critical = quantile * math.sqrt(algorithms * (algorithms + 1) / (6 * datasets))
    differ = (ranks != ranks[:, :1]).any()
    p_value = float(friedmanchisquare(*ranks.T).pvalue) if differ else 1.0
    return Ranking(ranks.mean(axis=0), critical, p_value, datasets)
