import numpy as np

from fedmpi.metrics.selection import as_published, at_rounds, best_rounds, last_rounds

NAN = np.nan


def test_best_is_highest_accuracy_then_lowest_loss_then_earliest():
    accuracy = np.array([[0.5, 0.8, 0.7], [0.9, 0.8, 0.7], [0.9, 0.8, NAN]])
    loss = np.array([[0.1, 0.4, 0.3], [0.6, 0.2, 0.3], [0.5, 0.3, NAN]])
    assert best_rounds(accuracy, loss).tolist() == [2, 1, 0]


def test_a_missing_loss_is_the_worst_loss():
    assert best_rounds(np.array([[0.5], [0.5]]), np.array([[NAN], [np.inf]])).tolist() == [0]
    assert best_rounds(np.array([[0.5], [0.5]]), np.array([[NAN], [3.0]])).tolist() == [1]


def test_last_is_the_last_evaluated_round_of_each_client():
    values = np.array([[0.1, 0.2, NAN], [0.3, NAN, NAN]])
    rounds = last_rounds(values)
    assert rounds.tolist() == [1, 0, -1]
    np.testing.assert_array_equal(at_rounds(values, rounds), [0.3, 0.2, NAN])


def test_no_rounds_at_all():
    nothing = np.empty((0, 2))
    assert last_rounds(nothing).tolist() == best_rounds(nothing, nothing).tolist() == [-1, -1]
    assert np.isnan(at_rounds(nothing, np.array([-1, -1]))).all()


def test_a_client_never_evaluated_has_no_best_round():
    nan = np.full((2, 1), NAN)
    assert best_rounds(nan, nan).tolist() == [-1]


def test_as_published_is_the_maximum_over_splits_and_the_end():
    accuracy = np.array([[0.9, 0.9, 0.9], [0.6, 0.8, 0.7], [0.5, 0.5, 0.5]])
    group = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert as_published(accuracy, group).tolist() == [0.6, 0.8, 0.7]


def test_as_published_without_splits_is_the_last_round():
    accuracy = np.array([[0.9, 0.9], [0.6, 0.8]])
    assert as_published(accuracy, np.zeros((2, 2), np.int64)).tolist() == [0.6, 0.8]


def test_a_split_counts_for_its_own_cluster_only():
    accuracy = np.array([[0.9, 0.9, 0.9, 0.9], [0.5, 0.5, 0.5, 0.5]])
    group = np.array([[0, 0, 1, 1], [0, 2, 1, 1]])
    assert as_published(accuracy, group).tolist() == [0.9, 0.9, 0.5, 0.5]


def test_without_losses_the_earliest_of_equals_is_best():
    assert best_rounds(np.array([[0.5], [NAN], [0.7], [0.7]])).tolist() == [2]
