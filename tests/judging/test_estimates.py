"""What an interval of differences decides, alone and among others."""

import math

import pytest
from scipy.special import stdtrit

from fedmpi.judging.estimates import Estimate, corrected, estimate, holm


@pytest.mark.parametrize(
    ("mean", "half", "count", "higher", "lower"),
    [
        (2.0, 1.5, 3, "better", "worse"),
        (-2.0, 1.5, 3, "worse", "better"),
        (2.0, 2.5, 3, "undecided", "undecided"),
        (0.0, 2.5, 3, "undecided", "undecided"),
        (0.0, 0.0, 3, "the same", "the same"),
        (0.0, math.nan, 1, "the same", "the same"),
        (2.0, math.nan, 1, "one pair only", "one pair only"),
        (math.nan, math.nan, 0, "no pair", "no pair"),
        (2.0, 0.1, 2, "two pairs only", "two pairs only"),
        (2.0, 0.0, 5, "no spread", "no spread"),
        (-2.0, 2e-15, 5, "no spread", "no spread"),
    ],
)
def test_an_interval_decides_where_it_excludes_0(mean, half, count, higher, lower):
    freedom = max(0, count - 1)
    gap = Estimate(mean, half / stdtrit(freedom, 0.975) if freedom else math.nan, count, freedom)
    assert (gap.verdict(higher=True), gap.verdict(higher=False)) == (higher, lower)


def test_a_p_value_is_that_of_the_two_sided_t_test():
    # t = 2.5 / (1 / sqrt(3)) = 4.330 with 2 degrees of freedom
    assert estimate([1.5, 2.5, 3.5]).p_value == pytest.approx(0.04941, abs=1e-5)
    for values in ([0.0, 0.0, 0.0], [1.0], [1.0, 1.1], [2.0, 2.0, 2.0], [0.1 + 0.2, 0.3, 0.3]):
        assert math.isnan(estimate(values).p_value)


def test_among_several_the_corrected_p_value_decides():
    gap = estimate([1.5, 2.5, 3.5])
    assert (gap.verdict(), gap.verdict(p_value=0.0988)) == ("better", "undecided")


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_differences_that_tell_nothing_are_no_part_of_a_family():
    # p = 0.04941 alone, so twice that as one of two.
    telling, same, few = estimate([1.5, 2.5, 3.5]), estimate([2.0, 2.0, 2.0]), estimate([1.0, 2.0])
    found = corrected([telling, None, same, few, telling])
    assert [round(p_value, 4) for p_value in (found[0], found[4])] == [0.0988, 0.0988]
    assert all(math.isnan(found[place]) for place in (1, 2, 3))
