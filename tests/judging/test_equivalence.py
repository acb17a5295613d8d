"""Better, worse, practically equivalent or open, over several datasets."""

import builtins
import math

import baycomp
import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.judging.equivalence import compare


@pytest.mark.parametrize(
    ("differences", "decision"),
    [
        ([3.0, 2.5, 4.0, 3.5, 2.8, 3.1], "better"),
        ([-3.0, -2.5, -4.0, -3.5, -2.8, -3.1], "worse"),
        ([0.2, -0.3, 0.1, 0.4, -0.2, 0.0], "equivalent"),
        ([4.0, -3.0, 2.0, -4.0, 0.5, 1.5], "undecided"),
        ([3.0, 3.0, 3.0, 3.0], "undecided"),
    ],
)
def test_differences_decide_where_they_lean_one_way_or_do_not_matter(differences, decision):
    assert compare(differences).decision == decision


def test_probabilities_are_those_of_the_library_and_the_interval_is_of_the_mean():
    differences = np.array([2.0, -0.5, 1.5, 3.0, 0.2, 1.1])
    found = compare(differences)
    sample = baycomp.SignedRankTest.probs(np.zeros(6), differences, 1.0, nsamples=50_000, random_state=7)
    assert (found.worse, found.equivalent, found.better) == pytest.approx(sample, abs=0.02)
    assert found.better + found.equivalent + found.worse == pytest.approx(1.0)
    assert found.mean == pytest.approx(7.3 / 6)
    # The resampled mean deviates by the population's deviation over the root of 6: 1.159 / 2.449 = 0.473.
    assert (found.mean - found.low, found.high - found.mean) == pytest.approx((0.93, 0.93), abs=0.1)
    assert compare(differences) == found


def test_few_datasets_have_a_mean_alone():
    found = compare([1.0, 2.0])
    assert (found.mean, found.datasets) == (1.5, 2)
    assert math.isnan(found.low) and math.isnan(found.better)
    assert math.isnan(compare([]).mean)


def test_a_missing_library_is_named_in_one_line(monkeypatch):
    usual = builtins.__import__

    def without(name, *others):
        if name == "baycomp":
            raise ImportError(name)
        return usual(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadInput, match=r"baycomp's, which is missing: pip install 'fedmpi\[report\]'"):
        compare([1.0] * 5)
