"""Scores of tasks with missing labels and of regression."""

import numpy as np
import pytest

from fedmpi.metrics import tasks

NAN = np.nan


def test_roc_auc_is_the_share_of_pairs_in_order():
    labels = np.array([[1], [1], [0], [0], [0]], float)
    assert tasks.roc_auc(labels, np.array([[0.9], [0.3], [0.5], [0.3], [0.1]]))[0] == (3 + 1.5) / 6


@pytest.mark.parametrize("distinct", [2, 9, 10_000])
def test_areas_of_many_tasks_are_those_of_pairs_counted_one_by_one(distinct):
    draws = np.random.default_rng(distinct)
    labels, scores = draws.integers(0, 2, (70, 6)).astype(float), draws.integers(0, distinct, (70, 6))
    labels[draws.random(labels.shape) < 0.3], scores = NAN, scores.astype(np.float32)
    scores[:3, 0], labels[:3, 0] = NAN, (0, 1, 1)  # equal to each other, above all numbers
    ranks = np.where(np.isnan(scores), distinct, scores)
    for task, found in enumerate(tasks.roc_auc(labels, scores)):
        above, below = ranks[labels[:, task] == 1, task], ranks[labels[:, task] == 0, task]
        pairs = [(a > b) + 0.5 * (a == b) for a in above for b in below]
        assert found == np.sum(pairs) / len(pairs)


def test_missing_labels_do_not_count():
    labels = np.array([[1, NAN], [0, 1], [NAN, 0]])
    scores = np.array([[2.0, 9], [1, 5], [7, 6]])
    assert tasks.roc_auc(labels, scores).tolist() == [1.0, 0.0]


def test_a_task_of_one_class_has_no_score():
    labels = np.array([[1, 1, NAN], [0, 1, NAN]])
    found = tasks.roc_auc(labels, np.zeros((2, 3)))
    np.testing.assert_array_equal(found, [0.5, NAN, NAN])
    np.testing.assert_array_equal(tasks.average_precision(labels, np.zeros((2, 3))), [0.5, NAN, NAN])
    assert tasks.mean_over_tasks(found) == 0.5


def test_average_precision_by_hand():
    labels = np.array([[1], [0], [1], [0]], float)
    scores = np.array([[4.0], [3], [2], [1]])
    assert tasks.average_precision(labels, scores)[0] == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_areas_equal_scikit_learns(seed):
    from sklearn.metrics import average_precision_score, roc_auc_score

    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, (60, 3)).astype(float)
    scores = rng.integers(0, 9, (60, 3)).astype(np.float32)
    roc, precision = tasks.roc_auc(labels, scores), tasks.average_precision(labels, scores)
    for task in range(3):
        assert roc[task] == pytest.approx(roc_auc_score(labels[:, task], scores[:, task]))
        assert precision[task] == pytest.approx(average_precision_score(labels[:, task], scores[:, task]))


def test_errors_of_regression_by_hand():
    labels = np.array([[0.0, 1], [2, NAN], [4, NAN]])
    values = np.array([[1.0, 3], [2, 8], [2, 8]], np.float32)
    np.testing.assert_allclose(tasks.rmse(labels, values), [np.sqrt(5 / 3), 2])
    np.testing.assert_allclose(tasks.mae(labels, values), [1, 2])
    np.testing.assert_allclose(tasks.r2(labels, values), [1 - 5 / 8, NAN])


def test_no_graph_has_no_score():
    nothing = np.zeros((0, 2))
    for score in (tasks.roc_auc, tasks.average_precision, tasks.rmse, tasks.mae, tasks.r2):
        np.testing.assert_array_equal(score(nothing, nothing), [NAN, NAN])
    assert np.isnan(tasks.mean_over_tasks(np.array([NAN])))
