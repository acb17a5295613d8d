"""Rating prediction: scores and the constant baseline, by hand."""

import numpy as np
import pytest
import torch

from fedmpi.datasets.networks import undirected
from fedmpi.graphs.batch import Batch
from fedmpi.models.networks import build
from fedmpi.models.options import GcnOptions, Shape
from fedmpi.models.outcome import Evaluation
from fedmpi.tasks.rating_prediction import RatingPrediction
from tests.making import client, labelled
from tests.tasks.making import make_case

RATINGS = np.array([[1.0], [3.0], [5.0], [2.0], [4.0], [3.0]])


@pytest.fixture
def task():
    """Two clients: one trains on ratings 1 and 3, tests 5 and 2; one trains on 4 and tests 3."""
    places = np.stack([np.arange(6), np.arange(6, 12)], axis=1)
    topology = undirected(places[:, 0], places[:, 1], np.array([0, 12]))
    raw = labelled(topology, RATINGS, "r", task="regression", places=places)
    splits = [client([0, 1], [], [2, 3], range(12)), client([4], [], [5], range(12))]
    return RatingPrediction(make_case(), [raw], splits)


def test_scores_over_all_and_of_each_client(task):
    outputs = [torch.tensor([[4.0], [4.0]]), torch.tensor([[3.5]])]
    tests = [torch.tensor([[5.0], [2.0]]), torch.tensor([[3.0]])]
    none = task.outcome(torch.zeros(0, 1), torch.zeros(0, 1))
    found = [Evaluation(none, task.outcome(*each), 0, 0) for each in zip(outputs, tests, strict=True)]
    rows = task.rows(np.concatenate([task.pack(client, each) for client, each in enumerate(found)]))
    assert float(rows["test_mse"]) == pytest.approx((1 + 4 + 0.25) / 3)
    assert float(rows["test_rmse"]) == pytest.approx(((1 + 4 + 0.25) / 3) ** 0.5)
    assert float(rows["test_mae"]) == pytest.approx((1 + 2 + 0.5) / 3)
    assert rows["client_test_mae"].tolist() == pytest.approx([1.5, 0.5])
    assert rows["client_test_mse"].tolist() == pytest.approx([2.5, 0.25])
    assert rows["client_test_rmse"].tolist() == pytest.approx([2.5**0.5, 0.5])
    names = {field.name for field in task.fields}
    assert set(rows) <= names


def test_the_mean_training_rating_is_the_constant_of_every_metric(task):
    found = task.partition()
    mean = (1 + 3 + 4) / 3
    errors = np.array([5, 2, 3]) - mean
    assert found["constant_mae"] == pytest.approx([np.abs(errors).mean()])
    assert found["constant_mse"] == pytest.approx([np.square(errors).mean()])
    assert found["constant_rmse"] == pytest.approx([np.square(errors).mean() ** 0.5])


def test_without_a_head_the_output_is_the_dot_product_of_both_states():
    module = build(GcnOptions(hidden=4, layers=1, head_layers=0), Shape(3, 1))
    assert module.readout is None
    topology = undirected(np.array([0, 1]), np.array([1, 2]), np.array([0, 3]))
    batch = Batch(topology, torch.eye(3), torch.zeros(2, 1), places=torch.tensor([[0, 1], [2, 2]]))
    states = Batch(topology, torch.eye(3), torch.zeros(3), places=torch.arange(3))
    rows = module.embed(states, None)
    expected = torch.stack([rows[0] @ rows[1], rows[2] @ rows[2]])[:, None]
    assert torch.allclose(module(batch, None), expected)
