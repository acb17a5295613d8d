"""Two samples of one set are those of scikit-learn, to the number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sklearn.model_selection import train_test_split

from fedmpi.partition.splits import _halve
from fedmpi.partition.strata import two_samples, two_strata

SEEDS = some.integers(0, 2**32 - 1)
CLASSES = some.lists(some.integers(0, 5), min_size=6, max_size=200).map(np.array)


@given(CLASSES, some.data(), SEEDS)
def test_strata_are_those_of_scikit_learn(classes, data, seed):
    items = np.arange(len(classes))[::-1] * 3
    first = data.draw(some.integers(1, len(items) - 1))
    second = data.draw(some.integers(1, len(items) - first))
    sizes = {"train_size": first, "test_size": second}
    try:
        expected = train_test_split(items, stratify=classes, random_state=seed, **sizes)
    except ValueError:
        with pytest.raises(ValueError):
            two_strata(items, classes, first, second, seed)
    else:
        found = two_strata(items, classes, first, second, seed)
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]


@given(some.integers(2, 200), some.data(), SEEDS)
def test_plain_samples_are_those_of_scikit_learn(count, data, seed):
    items = np.arange(count)[::-1] * 3
    first = data.draw(some.integers(1, count - 1))
    second = data.draw(some.integers(1, count - first))
    expected = train_test_split(items, train_size=first, test_size=second, random_state=seed)
    found = two_samples(items, first, second, seed)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


@pytest.mark.parametrize("count", [6, 7, 29, 30, 188, 1113])
@pytest.mark.parametrize("first", [0.8, 0.6, 0.5, 0.4])
def test_a_clients_parts_have_the_sizes_of_scikit_learn(count, first):
    items, classes = np.arange(count), np.arange(count) % 2
    rest = round(1 - first, 9)
    expected = train_test_split(items, train_size=first, test_size=rest, stratify=classes, random_state=7)
    found = _halve(items, classes, first, 7)[:2]
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
