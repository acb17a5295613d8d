"""Losses by task, with numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from fedmpi.tasks.regression import standardisation
from tests.tasks.making import make_task

NAN = math.nan
MULTI_LABEL = make_task("multi-task", np.array([[1.0, 0.0]]))


def test_multi_task_loss_is_the_mean_over_the_labels_there_are():
    outputs = torch.tensor([[0.0, 5.0], [2.0, -1.0]], requires_grad=True)
    labels = torch.tensor([[1.0, NAN], [0.0, 1.0]])
    loss = MULTI_LABEL.loss(outputs, labels)
    nats = [math.log(2), math.log1p(math.exp(2)), math.log1p(math.exp(1))]
    assert loss.item() == pytest.approx(sum(nats) / 3)
    loss.backward()
    sigmoid = [0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(1))]
    expected = [[(sigmoid[0] - 1) / 3, 0], [sigmoid[1] / 3, (sigmoid[2] - 1) / 3]]
    np.testing.assert_allclose(outputs.grad, expected, rtol=1e-6)


def test_multi_task_outcome_counts_labels():
    outputs = torch.tensor([[0.0, 5.0], [2.0, -1.0]])
    found = MULTI_LABEL.outcome(outputs, torch.tensor([[1.0, NAN], [NAN, NAN]]))
    np.testing.assert_allclose(found.losses, [math.log(2), 0])
    assert (found.weights.tolist(), found.weight) == ([1, 0], 1)
    assert found.mean_loss == pytest.approx(math.log(2))
    assert found.scores.tolist() == [[0, 5], [2, -1]]
    assert math.isnan(found.accuracy)


def test_regression_learns_standardised_targets_and_predicts_in_their_own_units():
    task = make_task("regression", np.array([[8.0, -1], [12, 1]]), targets="standardised")
    assert (task.center.tolist(), task.scale.tolist()) == ([10, 0], [2, 1])
    outputs, labels = torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([[14.0, 1.0], [12.0, NAN]])
    assert task.loss(outputs, labels).item() == pytest.approx((1 + 4 + 1) / 3)
    found = task.outcome(outputs, labels)
    assert found.losses.tolist() == [5, 1]
    assert found.weights.tolist() == [2, 1]
    assert found.scores.tolist() == [[12, 3], [10, 0]]


def test_soft_labels_are_what_outputs_predict_and_losses_take_them():
    """Cross-entropy with probabilities (1/4, 3/4); logit 0 with a probability of 1/2; numbers in their own units."""
    three, even = torch.tensor([[0.0, math.log(3)]]), torch.zeros(1, 1)
    classes = make_task("classification", np.array([0, 1]))
    assert classes.soft_labels(three)[0].tolist() == pytest.approx([0.25, 0.75])
    found = classes.losses(three, classes.soft_labels(three))
    assert found.tolist() == pytest.approx([0.25 * math.log(4) + 0.75 * math.log(4 / 3)])
    assert classes.losses(three, torch.tensor([1])).tolist() == pytest.approx([math.log(4 / 3)])
    assert MULTI_LABEL.soft_labels(even).tolist() == [[0.5]]
    assert MULTI_LABEL.losses(even, MULTI_LABEL.soft_labels(even)).item() == pytest.approx(math.log(2))
    numbers = make_task("regression", np.array([[8.0], [12.0]]), targets="standardised")
    assert numbers.soft_labels(torch.ones(1, 1)).tolist() == [[12.0]]
    assert numbers.losses(torch.tensor([[3.0]]), torch.tensor([[12.0]])).tolist() == [[4.0]]


def test_no_graph_has_no_loss():
    found = MULTI_LABEL.outcome(torch.zeros(0, 3), torch.zeros(0, 3))
    assert math.isnan(found.mean_loss)
    assert found.scores.shape == (0, 3)


def test_targets_are_scaled_by_the_labels_that_are_there():
    center, scale = standardisation(np.array([[1, NAN, 5, NAN], [3, 2, 5, NAN], [5, 4, 5, NAN]]))
    assert center == pytest.approx([3.0, 3.0, 5.0, 0.0])
    assert scale == pytest.approx([(8 / 3) ** 0.5, 1.0, 1.0, 1.0])
