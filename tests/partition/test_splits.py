"""80/10/10 splits of one client; the draws are those of scikit-learn, to the number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sklearn.model_selection import train_test_split

from fedmpi.partition.splits import _halve, split, two_samples, two_strata
from tests.refusals import refused

SEEDS = some.integers(0, 2**32 - 1)
CLASSES = some.lists(some.integers(0, 5), min_size=6, max_size=200).map(np.array)


@settings(deadline=None)
@given(CLASSES, some.data(), SEEDS)
def test_both_draws_are_those_of_scikit_learn(classes, data, seed):
    items = np.arange(len(classes))[::-1] * 3
    first = data.draw(some.integers(1, len(items) - 1))
    second = data.draw(some.integers(1, len(items) - first))
    sizes = {"train_size": first, "test_size": second}
    plain = train_test_split(items, random_state=seed, **sizes)
    assert list(map(list, two_samples(items, first, second, seed))) == list(map(list, plain))
    try:
        expected = train_test_split(items, stratify=classes, random_state=seed, **sizes)
    except ValueError:
        with pytest.raises(ValueError):
            two_strata(items, classes, first, second, seed)
    else:
        assert list(map(list, two_strata(items, classes, first, second, seed))) == list(map(list, expected))


@pytest.mark.parametrize("count", [6, 7, 29, 30, 188, 1113])
@pytest.mark.parametrize("first", [0.8, 0.6, 0.5, 0.4])
def test_a_clients_parts_have_the_sizes_of_scikit_learn(count, first):
    items, classes = np.arange(count), np.arange(count) % 2
    rest = round(1 - first, 9)
    expected = train_test_split(items, train_size=first, test_size=rest, stratify=classes, random_state=7)
    found = _halve(items, classes, first, 7)[:2]
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_parts_are_80_10_10_and_stratified():
    labels = np.repeat([0, 1], [60, 40])
    parts = split(np.arange(100), labels, 123, "c")
    assert [len(parts.train), len(parts.val), len(parts.test)] == [80, 10, 10]
    assert [int(labels[part].sum()) for part in (parts.train, parts.val, parts.test)] == [32, 4, 4]
    assert parts.stratified


def test_class_with_one_member_falls_back_and_says_so():
    labels = np.array([0] * 19 + [1])
    parts = split(np.arange(20), labels, 123, "c")
    assert not parts.stratified
    assert sorted(np.concatenate([parts.train, parts.val, parts.test]).tolist()) == list(range(20))


@pytest.mark.parametrize("count", range(6, 60))
def test_no_part_is_empty_and_no_graph_is_lost(count):
    parts = split(np.arange(count), np.arange(count) % 3, 123, "c")
    assert min(len(parts.train), len(parts.val), len(parts.test)) >= 1
    assert len(parts.train) + len(parts.val) + len(parts.test) == count


def test_too_few_graphs():
    with refused(match=r"client-07 has 5 examples, too few .* use fewer clients"):
        split(np.arange(5), np.zeros(5, np.int64), 123, "client-07")
