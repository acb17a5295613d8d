"""80/10/10 splits of one client."""

from __future__ import annotations

import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.partition.splits import split


def test_parts_are_80_10_10_and_stratified():
    labels = np.repeat([0, 1], [60, 40])
    parts = split(np.arange(100), labels, 123, "c")
    assert [len(parts.train), len(parts.val), len(parts.test)] == [80, 10, 10]
    assert [int(labels[part].sum()) for part in (parts.train, parts.val, parts.test)] == [32, 4, 4]
    assert parts.stratified


def test_split_is_the_one_of_scikit_learn():
    parts = split(np.arange(20), np.repeat([0, 1], 10), 123, "c")
    assert parts.train.tolist() == [13, 14, 3, 1, 19, 7, 16, 6, 0, 18, 12, 4, 8, 17, 5, 15]
    assert (parts.val.tolist(), parts.test.tolist()) == ([10, 9], [11, 2])


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
    with pytest.raises(BadInput, match=r"client-07 has 5 examples, too few .* use fewer clients"):
        split(np.arange(5), np.zeros(5, np.int64), 123, "client-07")
