import math

import numpy as np
import pytest

from fedmpi.analysis.reproduction.statistics import Estimate, estimate, holm, pool


def mean(values):
    return values.mean(axis=-1)


def test_a_mean_has_the_usual_standard_error_and_students_interval():
    found = estimate(np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]), mean)
    assert (found.value, found.count, found.freedom) == (3.0, 5, 4)
    assert found.error == pytest.approx(math.sqrt(2.5 / 5))
    # t(0.975, 4) = 2.776
    assert str(found) == "3.0000 ± 1.9632"
    assert found.std == pytest.approx(math.sqrt(2.5))


def test_one_repetition_has_no_interval():
    found = estimate(np.array([[0.5, 0.7]]), mean)
    assert str(found) == "0.6000"
    assert found.signed == "+0.6000"
    assert found.tail(1.0) == 1.0


def test_a_figure_in_steps_gets_its_error_from_every_resample():
    # Gains -1 and 1: the mean is at least 0 in three of four resamples, variance 3/16, times 2.
    found = estimate(np.array([[-1.0], [1.0]]), lambda gains: (gains >= 0).mean(axis=-1))
    assert found.value == 1.0
    assert found.error == pytest.approx(math.sqrt(3 / 8))


def test_many_repetitions_are_resampled_the_same_way_every_time():
    values = np.arange(12.0)[:, None]
    first, again = estimate(values, mean), estimate(values, mean)
    assert first == again
    assert first.error == pytest.approx(values.std(ddof=1) / math.sqrt(12), rel=0.03)


def test_equal_repetitions_have_no_error_but_a_floor():
    values = np.full((5, 3), 0.1)
    assert estimate(values, mean).error == 0.0
    assert estimate(values, mean, floor=0.05).error == 0.05


def test_a_tail_is_students():
    # P(t > 3) = 0.0200 with 4 degrees of freedom
    one = Estimate(0.03, 0.01, 5, 4)
    assert one.tail(0.03) == pytest.approx(0.019971, abs=1e-6)
    assert one.tail(math.inf) == 0.0
    assert (Estimate(0.0, 0.0, 5, 4).tail(0.1), Estimate(0.0, 0.0, 5, 4).tail(0.0)) == (0.0, 1.0)


def test_a_difference_allows_for_the_published_repetitions():
    found = Estimate(0.75, 0.01, 5, 4).against(0.73, repetitions=5)
    assert found.value == pytest.approx(0.02)
    assert found.error == pytest.approx(0.01 * math.sqrt(2))


def test_pooled_errors_come_from_all_and_identical_runs_count_once():
    quiet, loud, single = Estimate(0.1, 0.1, 4, 3), Estimate(0.2, 0.3, 4, 3), Estimate(0.3, math.nan, 1, 0)
    found = pool([quiet, loud, loud, single, None])
    # variances between repetitions 0.04 and 0.36
    assert [one and one.freedom for one in found] == [6, 6, 6, 6, None]
    assert [one and round(one.error, 6) for one in found] == [0.223607, 0.223607, 0.223607, 0.447214, None]


def test_nothing_to_pool_leaves_what_there_is():
    assert pool([None, single := Estimate(0.3, math.nan, 1, 0)]) == [None, single]


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
