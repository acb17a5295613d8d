import math

import numpy as np
import pytest

from fedmpi.metrics import clients


@pytest.mark.parametrize(("count", "expected"), [(1, 1.0), (10, 1.0), (11, 1.5), (20, 1.5), (21, 2.0)])
def test_lowest_decile_is_the_mean_of_the_worst_tenth_rounded_up(count, expected):
    assert clients.lowest_decile(np.arange(count, 0, -1.0)) == expected


def test_spread_over_seeds_of_opposite_clients():
    values = np.array([[0.0, 4.0], [2.0, 2.0], [4.0, 0.0]])
    assert clients.std_over_seeds(values) == 2.0
    assert clients.std_of_average(values) == 0.0


def test_splits_are_found_with_the_smaller_side():
    group = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 2, 2, 0], [0, 1, 2, 2, 0]])
    assert clients.splits(group) == [(1, 1), (2, 2)]
    assert clients.splits(group[:1]) == []


def test_accuracy_over_some_test_graphs():
    correct = np.array([[1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 0, 1]], np.uint8)
    pointers = np.array([0, 3, 5, 6])
    chosen = np.array([True, True, False, True, True, False])
    expected = [[0.5, 0.5, np.nan], [0.5, 0.0, np.nan]]
    assert np.array_equal(clients.subset_accuracy(correct, pointers, chosen), expected, equal_nan=True)


def test_mean_over_the_clients_evaluated_in_each_round():
    accuracy = np.array([[0.2, 0.4], [np.nan, np.nan], [np.nan, 0.25]])
    np.testing.assert_allclose(clients.mean_by_round(accuracy), [0.3, np.nan, 0.25])
    assert clients.mean_by_round(np.array([1.5, 2.0])).tolist() == [1.5, 2.0]


def test_mean_and_worst_leave_out_clients_without_a_value():
    values, errors, nothing = np.array([0.75, np.nan, 0.25]), np.array([3.0, np.nan, 1.0]), np.array([np.nan])
    assert (clients.mean(values), clients.worst(values)) == (0.5, (2, 0.25))
    assert clients.worst(errors, sign=-1) == (0, 3.0)  # the worst of errors are the highest
    assert clients.lowest_decile(np.arange(11.0), sign=-1) == 9.5
    assert math.isnan(clients.mean(nothing)) and math.isnan(clients.lowest_decile(nothing))
    assert clients.worst(nothing)[0] == -1
