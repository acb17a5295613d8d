"""What the server's program gets for its requests, on one rank, by hand."""

import numpy as np
import pytest

from fedmpi.case.reductions import ExactOptions
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Plain
from fedmpi.exchange.answers import REQUESTS, Answers
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.group_models import RoundPlan

GROUP, SAMPLES, HOSTS = np.array([0, 0, 1, 3]), np.array([3, 1, 1, 1]), np.zeros(4, np.int64)
DELTAS = {n: np.array(row, np.float32) for n, row in enumerate([[1, 0, 9], [5, 4, 9], [2, 2, 9], [8, 0, 9]])}
"""Two parameters, and a running statistic."""


def answer(kind, places, participants=(0, 1, 2, 3), steps=None):
    """Return the answer to a request."""
    collectives = World().collectives
    means = Plain(collectives, HOSTS, ExactOptions(), 2, Buffers())
    marks = np.isin(np.arange(4), places).astype(np.int64)
    exponent = np.full(4, 5)  # all is less than 2^5
    plan = RoundPlan(GROUP, exponent, marks, -1, -1, False, False, REQUESTS.index(kind), steps=steps)
    held = {client: DELTAS[client] for client in participants}
    return Answers(collectives, HOSTS, means, 2, 3, SAMPLES).answer(plan, np.array(participants), held)


def as_lists(means):
    return {group: mean.tolist() for group, mean in means.items()}


def test_means_are_of_the_parameters_of_the_groups_asked_for():
    assert as_lists(answer("means", [0, 3])) == {0: [3.0, 2.0], 3: [8.0, 0.0]}


def test_weighted_means_are_by_training_examples():
    assert as_lists(answer("weighted means", [0, 1])) == {0: [2.0, 1.0], 1: [2.0, 2.0]}


def test_a_mean_is_of_the_participants():
    assert as_lists(answer("weighted means", [0], participants=(1, 2))) == {0: [5.0, 4.0]}


def test_a_group_of_which_no_update_arrived_has_no_mean():
    steps = np.array([Step.UPLOAD, Step.UPLOAD + 1, Step.UPLOAD, Step.UPLOAD + 1])
    assert as_lists(answer("means", [0, 1, 3], steps=steps)) == {0: [5.0, 4.0], 3: [8.0, 0.0]}


@pytest.mark.parametrize(("kind", "width"), [("rows", 3), ("parameters", 2)])
def test_rows_come_in_the_order_of_clients(kind, width):
    found = answer(kind, [3, 1])
    assert found.dtype == np.float32
    assert found.tolist() == [DELTAS[1][:width].tolist(), DELTAS[3][:width].tolist()]
