"""What an interval of differences decides."""

import math

import pytest

from fedmpi.analysis.estimates import Estimate


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
    ],
)
def test_an_interval_decides_where_it_excludes_0(mean, half, count, higher, lower):
    gap = Estimate(mean, half, count)
    assert (gap.verdict(higher=True), gap.verdict(higher=False)) == (higher, lower)
