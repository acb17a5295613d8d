"""Orders of rated items: as scikit-learn has them, and with ties."""

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from fedmpi.metrics.ranking import hit_ratio, ndcg


@pytest.mark.parametrize("ties", [False, True])
def test_ndcg_is_scikit_learns_mean_over_groups(ties):
    generator = np.random.default_rng(ties)
    groups = generator.integers(0, 40, 400)
    gains = generator.integers(0, 6, 400).astype(float)
    predicted = generator.integers(0, 4, 400).astype(float) if ties else generator.standard_normal(400)
    wanted = [
        ndcg_score([gains[groups == group]], [predicted[groups == group]], k=5)
        for group in range(40)
        if (groups == group).sum() > 1 and gains[groups == group].any()
    ]
    assert ndcg(groups, gains, predicted, 5) == pytest.approx(np.mean(wanted), abs=1e-12)


def test_a_group_of_one_has_no_order():
    one = np.array([0, 1, 2])
    assert math.isnan(ndcg(one, np.ones(3), np.ones(3), 10))
    assert math.isnan(hit_ratio(one, np.ones(3), np.ones(3)))
    assert math.isnan(ndcg(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 10))


def test_hits_are_first_items_that_were_rated_highest():
    groups = np.array([0, 0, 0, 1, 1, 2, 2])
    gains = np.array([5.0, 5.0, 1.0, 2.0, 4.0, 3.0, 3.0])  # the last group's items are all alike
    assert hit_ratio(groups, gains, np.array([0.9, 0.1, 0.2, 0.8, 0.3, 0.0, 1.0])) == 0.5
    assert hit_ratio(groups, gains, np.zeros(7)) == pytest.approx((2 / 3 + 1 / 2) / 2)
