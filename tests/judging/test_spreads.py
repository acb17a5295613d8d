import math

import numpy as np
import pytest

from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.judging.spreads import bartlett, bootstrap, pool


def spread(value, std, count):
    """Return the mean of so many repetitions with that standard deviation."""
    return Estimate(value, std / math.sqrt(count), count, count - 1)


@pytest.mark.parametrize(
    ("values", "std", "text"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0], math.sqrt(2.5), "3.0000 ± 1.9632"),  # t(0.975, 4) = 2.776
        # Sum of squares of 0 to 11 around 5.5: 143; 143 / 11 = 13; t(0.975, 11) = 2.201.
        (range(12), math.sqrt(13), "5.5000 ± 2.2909"),
    ],
)
def test_a_mean_has_the_usual_standard_error_and_students_interval(values, std, text):
    found = estimate(values)
    assert (found.count, found.freedom) == (len(values), len(values) - 1)
    assert found.error == pytest.approx(std / math.sqrt(len(values)))
    assert (found.std, str(found)) == (pytest.approx(std), text)


def test_one_repetition_has_no_interval():
    found = estimate(np.array([0.6]))
    assert str(found) == "0.6000"
    assert found.signed == "+0.6000"
    assert found.tail(1.0) == 1.0


def test_a_figure_in_steps_gets_its_error_from_every_resample():
    # Gains -1 and 1: the mean is at least 0 in three of four resamples, variance 3/16, times 2.
    found = bootstrap(np.array([[-1.0], [1.0]]), lambda gains: (gains >= 0).mean(axis=-1))
    assert found.mean == 1.0
    assert found.error == pytest.approx(math.sqrt(3 / 8))


def test_many_repetitions_of_a_minimum_are_resampled_the_same_way_every_time():
    values = np.stack([np.arange(12.0), np.arange(12.0)[::-1]], axis=1)
    first, again = (bootstrap(values, lambda means: means.min(axis=-1)) for _ in range(2))
    assert first == again
    assert (first.mean, first.freedom) == (5.5, 11)


def test_equal_repetitions_have_no_error_but_a_floor():
    assert estimate(np.full(5, 0.1)).rounded().error == 0.0
    values = np.full((5, 3), 0.1)
    assert bootstrap(values, lambda means: means.min(axis=-1)).error == 0.0
    assert bootstrap(values, lambda means: means.min(axis=-1), floor=0.05).error == 0.05


def test_a_tail_is_students():
    # P(t > 3) = 0.0200 with 4 degrees of freedom
    one = Estimate(0.03, 0.01, 5, 4)
    assert one.tail(0.03) == pytest.approx(0.019971, abs=1e-6)
    assert one.tail(math.inf) == 0.0
    assert (Estimate(0.0, 0.0, 5, 4).tail(0.1), Estimate(0.0, 0.0, 5, 4).tail(0.0)) == (0.0, 1.0)


def test_a_difference_allows_for_the_published_repetitions():
    found = Estimate(0.75, 0.01, 5, 4).against(0.73, repetitions=5)
    assert found.mean == pytest.approx(0.02)
    assert found.error == pytest.approx(0.01 * math.sqrt(2))


def test_a_difference_to_a_figure_with_a_spread_of_its_own_is_welchs():
    # Variances of the means 0.0004 / 4 and 0.0009 / 9, both 0.0001: error root 0.0002, and
    # (0.0002)^2 / (0.0001^2 / 3 + 0.0001^2 / 8) = 4 / (1/3 + 1/8) = 8.727 degrees of freedom.
    found = spread(0.75, 0.02, 4).against(0.70, repetitions=9, spread=0.03)
    assert found.error == pytest.approx(math.sqrt(0.0002))
    assert found.freedom == pytest.approx(96 / 11)
    assert (found.mean, found.count) == (pytest.approx(0.05), 4)


def test_a_published_figure_that_never_moves_leaves_our_spread():
    found = spread(0.75, 0.02, 4).against(0.70, repetitions=10, spread=0.0)
    assert (found.error, found.freedom) == (pytest.approx(0.01), 3)
    alone = Estimate(0.75, math.nan, 1, 0).against(0.70, repetitions=10, spread=0.03)
    assert alone.signed == "+0.0500"


def test_bartletts_test_of_equal_variances():
    # Variances 1 and 4 of five each: pooled 2.5; (8 ln 2.5 - 4 ln 1 - 4 ln 4) / (1 + (1/4 + 1/4 - 1/8) / 3)
    # = 1.78515 / 1.125 = 1.58680; chi-squared with one degree of freedom: p = 0.20779.
    found = bartlett([spread(0.1, 1.0, 5), spread(0.2, 2.0, 5), None])
    assert found == pytest.approx(0.20779, abs=1e-5)
    samples = [[0.1, 0.4, 0.2], [0.5, 0.1, 0.9, 0.2], [0.3, 0.35, 0.2]]
    # What scipy.stats.bartlett says of them.
    assert bartlett([estimate(np.array(each)) for each in samples]) == pytest.approx(0.142619844)


def test_bartletts_test_where_runs_do_not_move():
    still, loud = spread(0.1, 0.0, 5), spread(0.2, 0.1, 5)
    assert bartlett([still, loud]) == 0.0
    assert bartlett([still, spread(0.3, 0.0, 5)]) == 1.0
    assert math.isnan(bartlett([loud, loud, None]))


def test_pooled_errors_come_from_all_and_identical_runs_count_once():
    quiet, loud, single = spread(0.1, 0.2, 4), spread(0.2, 0.3, 4), Estimate(0.3, math.nan, 1, 0)
    found = pool([quiet, loud, loud, single, None])
    # Variances between repetitions 0.04 and 0.09: 0.065.
    assert [one and one.freedom for one in found] == [6, 6, 6, 6, None]
    assert [one and round(one.error, 6) for one in found] == [0.127475, 0.127475, 0.127475, 0.254951, None]


def test_methods_that_deviate_differently_or_not_at_all_keep_their_own():
    quiet, loud = spread(0.1, 0.02, 5), spread(0.2, 0.3, 5)
    assert bartlett([quiet, loud]) < 0.001
    assert pool([quiet, loud, None]) == [quiet, loud, None]
    assert pool([None, single := Estimate(0.3, math.nan, 1, 0)]) == [None, single]
