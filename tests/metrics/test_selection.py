import numpy as np
import pytest

from fedmpi.metrics.selection import as_published, at_rounds, best_rounds, last_rounds

NAN = np.nan


def test_best_is_highest_accuracy_then_lowest_loss_then_earliest():
    accuracy = np.array([[0.5, 0.8, 0.7], [0.9, 0.8, 0.7], [0.9, 0.8, NAN]])
    loss = np.array([[0.1, 0.4, 0.3], [0.6, 0.2, 0.3], [0.5, 0.3, NAN]])
    assert best_rounds(accuracy, loss).tolist() == [2, 1, 0]


def test_last_is_the_last_evaluated_round_of_each_client():
    values = np.array([[0.1, 0.2, NAN], [0.3, NAN, NAN]])
    rounds = last_rounds(values)
    assert rounds.tolist() == [1, 0, -1]
    np.testing.assert_array_equal(at_rounds(values, rounds), [0.3, 0.2, NAN])


def test_no_rounds_at_all():
    nothing = np.empty((0, 2))
    assert last_rounds(nothing).tolist() == best_rounds(nothing, nothing).tolist() == [-1, -1]
    assert np.isnan(at_rounds(nothing, np.array([-1, -1]))).all()


def test_a_missing_loss_is_the_worst_and_without_losses_the_earliest_of_equals_is_best():
    assert best_rounds(np.array([[0.5], [0.5]]), np.array([[NAN], [np.inf]])).tolist() == [0]
    assert best_rounds(np.array([[0.5], [0.5]]), np.array([[NAN], [3.0]])).tolist() == [1]
    assert best_rounds(np.array([[0.5], [NAN], [0.7], [0.7]])).tolist() == [2]
    assert best_rounds(np.full((2, 1), NAN), np.full((2, 1), NAN)).tolist() == [-1]  # never evaluated


@pytest.mark.parametrize(
    ("accuracy", "group", "expected"),
    [
        ([[0.9] * 3, [0.6, 0.8, 0.7], [0.5] * 3], [[0] * 3, [0] * 3, [0, 1, 0]], [0.6, 0.8, 0.7]),
        ([[0.9, 0.9], [0.6, 0.8]], [[0, 0], [0, 0]], [0.6, 0.8]),  # without splits the last round
        ([[0.9] * 4, [0.5] * 4], [[0, 0, 1, 1], [0, 2, 1, 1]], [0.9, 0.9, 0.5, 0.5]),  # its own cluster only
    ],
)
def test_as_published_is_the_maximum_over_splits_and_the_end(accuracy, group, expected):
    assert as_published(np.array(accuracy), np.array(group)).tolist() == expected
