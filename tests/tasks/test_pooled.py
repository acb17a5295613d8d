"""Scores over all clients' graphs, made on rank 0 of what every client sends."""

import numpy as np
import pytest

from fedmpi.models.outcome import Evaluation, Outcome
from tests.making import client
from tests.tasks.making import make_task

NAN = np.nan


def evaluation(val, test):
    def outcome(scores):
        table = np.array(scores, np.float32).reshape(len(scores), 2)
        return Outcome(np.zeros(len(table)), np.zeros(len(table), np.uint8), np.ones(len(table), int), table)

    return Evaluation(outcome(val), outcome(test), 0, 0)


@pytest.fixture
def scores():
    """Two clients: one has a validation and two test graphs, the other two validation graphs and no test graph."""
    labels = np.array([[0, 1], [1, 0], [0, 0], [1, NAN], [1, 0], [0, 1]])
    return make_task("multi-task", labels, [client([0], [1], [4, 5]), client([0], [2, 3])])


FIRST = evaluation([[2, 1]], [[1, 5], [0, 7]])
SECOND = evaluation([[3, 0], [3, 9]], [])


def test_graphs_of_a_client_that_was_not_evaluated_do_not_count(scores):
    found = scores.rows(np.concatenate([scores.pack(0, None), scores.pack(1, SECOND)]))
    assert found["val_roc_auc"] == 0.5
    assert np.isnan(found["test_roc_auc"])
    assert found["test_tasks_left_out"] == 0


def test_graphs_of_all_clients_are_scored_together(scores):
    assert scores.lengths.tolist() == [24, 16]  # four bytes per graph and task
    found = scores.rows(np.concatenate([scores.pack(0, FIRST), scores.pack(1, SECOND)]))
    # task a: positives score 2 and 3, the negative 3; task b has negatives only
    np.testing.assert_array_equal(found["val_task_roc_auc"], [0.25, NAN])
    assert (found["val_roc_auc"], found["val_tasks_left_out"]) == (0.25, 1)
    assert (found["test_roc_auc"], found["test_tasks_left_out"]) == (1.0, 0)
    # a client without test graphs has no score of its own
    np.testing.assert_array_equal(found["client_test_roc_auc"], [1.0, NAN])
    np.testing.assert_array_equal(found["client_val_roc_auc"], [NAN, 0.5])
    assert {field.name for field in scores.fields} == set(found) | {"train_loss", "val_loss", "test_loss"}
