"""Average ranks, Friedman's test and the critical difference."""

import numpy as np
import pytest

from fedmpi.judging.ranking import ranking, ranks

# Ranks of four algorithms on six datasets, two of them with ties.
RANKS = np.array(
    [[1, 2, 3, 4], [1, 2, 4, 3], [1.5, 1.5, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4], [1, 2.5, 2.5, 4]], float
)


def test_the_critical_difference_is_that_of_demsars_table():
    # Table 5 of the paper: q = 2.569 for four and 2.343 for three algorithms at 0.05.
    assert ranking(RANKS).critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 6)), abs=1e-3)
    three = np.tile([1.0, 2.0, 3.0], (14, 1))
    assert ranking(three).critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 14)), abs=1e-3)


def test_friedmans_test_is_that_of_scipy_and_1_where_all_tie():
    from scipy.stats import friedmanchisquare

    found = ranking(RANKS)
    assert found.average.tolist() == pytest.approx(RANKS.mean(axis=0).tolist())
    assert found.p == pytest.approx(friedmanchisquare(*RANKS.T).pvalue)
    assert found.datasets == 6
    assert ranking(np.full((3, 4), 2.5)).p == 1.0


def test_equal_scores_share_their_ranks_and_what_has_no_score_is_last():
    assert ranks([0.5, 0.7, 0.5, 0.2]).tolist() == [2.5, 1.0, 2.5, 4.0]
    assert ranks([0.5, float("nan"), 0.7]).tolist() == [2.0, 3.0, 1.0]
