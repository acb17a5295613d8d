import numpy as np
import pytest
from scipy.special import ndtri, stdtr

from fedmpi.judging.sequential import STUDENT, Looks, nominal_levels, rejected

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [
        # Five equal looks at one-sided 0.025, as tables of Lan and DeMets' boundaries have them.
        ("obrien-fleming", (4.877, 3.357, 2.680, 2.290, 2.031)),
        ("pocock", (2.438, 2.427, 2.410, 2.397, 2.386)),
    ],
)
def test_the_boundaries_are_the_published_ones(spending, bounds):
    levels = nominal_levels(0.025, FIFTHS, spending)
    assert [-ndtri(level) for level in levels] == pytest.approx(bounds, abs=1e-3)


@pytest.mark.parametrize("spending", ["pocock", "obrien-fleming"])
def test_a_single_look_has_the_whole_level(spending):
    assert nominal_levels(0.05, (1.0,), spending) == pytest.approx((0.05,), abs=1e-9)


def test_a_look_decides_by_its_own_part_of_the_level():
    early, last = nominal_levels(0.05, (0.5, 1.0), "obrien-fleming")
    assert early < 0.01 < last
    assert not Looks((0.01,), (0.5, 1.0)).rejects(0.05, "obrien-fleming")
    assert Looks((0.01, 0.01), (0.5, 1.0)).rejects(0.05, "obrien-fleming")


def test_holm_goes_on_with_what_is_left_and_takes_nothing_back():
    def one(p_value):
        return Looks((p_value,), (1.0,))

    # Spent is 0.0375: 0.0125 of three, then 0.01875 of two, then 0.0375.
    assert rejected([one(0.03), one(0.0124), one(0.0187)], 0.05, "pocock") == [True, True, True]
    assert rejected([one(0.03), one(0.0126), one(0.0187)], 0.05, "pocock") == [False, False, False]
    worse = Looks((0.001, 0.9), (0.5, 1.0))
    assert rejected([worse], 0.05, "pocock") == [True]


@pytest.mark.parametrize("spending", ["pocock", "obrien-fleming"])
def test_at_most_one_family_in_twenty_has_a_false_decision(spending):
    """Two claims just hold and two just do not: all truths lie at a limit, where errors are the most likely.

    First look at three seeds, last at ten. Tests that are made anew after every seed misjudge far more.
    """
    families, first, last = 4000, 3, 10
    values = np.random.default_rng(27).standard_normal((families, 4, last))
    counts = np.arange(first, last + 1)
    t = np.stack(
        [values[..., :n].mean(-1) / values[..., :n].std(-1, ddof=1) * np.sqrt(n) for n in counts], axis=-1
    )
    fractions = tuple(float(n) / last for n in counts)

    def family(p_values):
        return [Looks(tuple(each), fractions) for each in p_values]

    false = 0
    for confirm, refute in zip(stdtr(counts - 1, -t), stdtr(counts - 1, t), strict=True):
        confirmed, refuted = (rejected(family(each), 0.05, spending) for each in (confirm, refute))
        false += any([*refuted[:2], *confirmed[2:]])
    assert 0.02 < false / families <= 0.05
    careless = stdtr(counts - 1, np.concatenate([t[:, :2], -t[:, 2:]], axis=1)) <= STUDENT * 0.05 / 4
    assert careless.any(axis=(1, 2)).mean() > 0.09
