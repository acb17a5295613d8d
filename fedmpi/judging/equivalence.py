"""Two methods over several datasets: better, worse or practically equivalent, with an interval of the mean.

Benavoli et al., "Time for a change: a tutorial for comparing multiple classifiers through Bayesian analysis",
JMLR 18, 2017: the Bayesian signed-rank test, by the authors' library baycomp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.judging.estimates import LEVEL

ROPE = 1.0
"""Half the width of the region of practical equivalence, in points: differences within it do not matter."""

SURE = 0.95
"""A statement of at least this probability is a decision."""

FEWEST_DATASETS = 5
"""With fewer there is no interval and no decision. For normal leads the bootstrap's interval covers 75 % with
three, 85 % with five and 91 % with twelve, in place of 95 %."""

UNDECIDED = "undecided"
"""Decision where none of the three statements is sure."""

_SAMPLES, _SEED = 50_000, 1
"""Of the posterior: a probability of 0.95 is known to 0.001."""


@dataclass(frozen=True)
class Comparison:
    """Mean differences to a reference on several datasets, in points; above 0 the method is better.

    Attributes
    ----------
    mean, median : float
        Over the datasets; NaN without one.
    datasets : int
    low, high : float
        95 % interval of the mean: percentile bootstrap, which draws datasets with all their seeds. NaN with
        fewer than `FEWEST_DATASETS`.
    better, equivalent, worse : float
        Posterior probabilities that means of two differences are most often above, within and below the
        region of practical equivalence. NaN with fewer than `FEWEST_DATASETS`.
    """

    mean: float
    median: float
    datasets: int
    low: float = math.nan
    high: float = math.nan
    better: float = math.nan
    equivalent: float = math.nan
    worse: float = math.nan

    @property
    def decision(self) -> str:
        """Better, worse, equivalent or `UNDECIDED`."""
        found = (name for name in ("better", "worse", "equivalent") if getattr(self, name) >= SURE)
        return next(found, UNDECIDED)


def compare(differences: npt.ArrayLike) -> Comparison:
    """Return what mean differences on several datasets say; always the same for the same differences.

    Raises
    ------
    BadInput
        baycomp is missing.
    """
    given = np.asarray(differences, np.float64)
    mean, median = (float(each(given)) if len(given) else math.nan for each in (np.mean, np.median))
    if len(given) < FEWEST_DATASETS:
        return Comparison(mean, median, len(given))
    try:
        from baycomp import SignedRankTest
    except ImportError as error:
        raise BadInput(
            "the signed-rank test is baycomp's, which is missing: pip install 'fedmpi[report]'"
        ) from error
    from scipy.stats import bootstrap

    none = np.zeros(len(given))
    chances = SignedRankTest.probs(none, given, ROPE, nsamples=_SAMPLES, random_state=_SEED)
    drawn = bootstrap(
        (given,),
        np.mean,
        confidence_level=1 - LEVEL,
        method="percentile",
        random_state=np.random.default_rng(_SEED),
    )
    low, high = map(float, drawn.confidence_interval)
    worse, equivalent, better = map(float, chances)
    return Comparison(mean, median, len(given), low, high, better, equivalent, worse)
