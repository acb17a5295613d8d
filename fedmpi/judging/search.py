"""What a random search of n candidates is expected to give, from N that were tried.

Dodge et al., "Show your work: improved reporting of experimental results", EMNLP 2019: with the values in
ascending order the best of n that are drawn with replacement is that of rank r with probability
(r / N)^n - ((r - 1) / N)^n. Here the validation score ranks and the test score is what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def expected_score(val: npt.ArrayLike, test: npt.ArrayLike, draws: Sequence[int]) -> list[float]:
    """Return the expected test score of the candidate that validation chooses among so many drawn ones.

    Parameters
    ----------
    val : float [N]
        Validation scores, the higher the better. NaN for a candidate that has diverged: it ranks last. Of
        equal ones any is chosen with the same probability.
    test : float [N]
        What a user of the candidate gets; for one that has diverged what is used in its place.
    draws : sequence of int
        Numbers n of drawn candidates.
    """
    ranked, scores = np.asarray(val, np.float64), np.asarray(test, np.float64)
    ranked = np.where(np.isnan(ranked), -math.inf, ranked)
    _, group, sizes = np.unique(ranked, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=scores) / sizes
    reached = np.concatenate([[0.0], np.cumsum(sizes)]) / len(ranked)
    return [float(np.diff(reached**count) @ means) for count in draws]
