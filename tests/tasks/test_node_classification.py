"""Node classification: what travels, and scores worked out by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from fedmpi.datasets.networks import undirected
from fedmpi.metrics.tasks import f1
from fedmpi.models.outcome import Evaluation
from fedmpi.tasks.node_classification import NodeClassification
from tests.making import client, labelled
from tests.tasks.making import make_case

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])


@pytest.fixture
def task():
    """Two clients: one validates node 2 and tests nodes 3 and 4, one tests node 7."""
    topology = undirected(np.arange(7), np.arange(1, 8), np.array([0, 8]))
    raw = labelled(topology, LABELS, "abc", places=np.arange(8))
    splits = [client([0, 1], [2], [3, 4], range(5)), client([5, 6], [], [7], range(5, 8))]
    return NodeClassification(make_case(), [raw], splits)


def found(task, val, test, labels_val, labels_test):
    parts = []
    for classes, labels in ((val, labels_val), (test, labels_test)):
        logits = torch.nn.functional.one_hot(torch.tensor(classes, dtype=torch.int64), 3).float()
        parts.append(task.outcome(logits.reshape(-1, 3), torch.tensor(labels, dtype=torch.int64)))
    return Evaluation(*parts, 0, 0)


def test_two_bytes_of_each_held_out_node_travel_and_scores_are_over_all_clients(task):
    assert task.lengths.tolist() == [6, 2]
    one, two = found(task, [2], [0, 2], [2], [0, 1]), found(task, [], [1], [], [1])
    assert task.pack(0, one).view(np.int16).tolist() == [2, 0, 2]
    rows = task.rows(np.concatenate([task.pack(0, one), task.pack(1, two)]))
    assert rows["test_correct"].tolist() == [1, 0, 1]
    assert float(rows["test_micro_f1"]) == pytest.approx(2 / 3)
    # class 0: F1 1; class 1: one of two found, F1 2/3; class 2: named once wrongly, F1 0
    assert float(rows["test_macro_f1"]) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert float(rows["val_micro_f1"]) == 1
    # a client that was not evaluated does not count
    assert task.pack(1, None).view(np.int16).tolist() == [-1]
    rows = task.rows(np.concatenate([task.pack(0, one), task.pack(1, None)]))
    assert (rows["test_correct"].tolist(), float(rows["test_micro_f1"])) == ([1, 0, 0], 0.5)
    nobody = task.rows(np.concatenate([task.pack(0, None), task.pack(1, None)]))
    assert np.isnan(nobody["test_micro_f1"])


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(6, size=(2, 500))
    expected = [f1_score(labels, predicted, average=kind) for kind in ("micro", "macro")]
    assert f1(labels, predicted, 9) == pytest.approx(expected)
