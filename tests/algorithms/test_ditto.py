"""Ditto's Algorithm 1: the personal model's penalty and steps, by hand, and the global model as FedAvg's."""

import pytest
import torch

from tests.algorithms.programs import gradient_at, named


def test_the_personal_gradient_gains_lambda_times_the_distance():
    gradient = torch.tensor([1.0, 1.0])
    ditto = named("ditto", attraction=0.5)
    ditto._drawn(gradient, torch.tensor([3.0, 0.0]), torch.tensor([1.0, 1.0]), {})
    assert gradient.tolist() == [2.0, 0.5]


SETTINGS = ("algorithm=ditto", "algorithm.attraction=2.0")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_personal_model_starts_as_the_clients_model(prepared, optimizer):
    rounds = prepared(*SETTINGS, f"optimizer={optimizer}", "optimizer.lr=0.25")
    one = rounds.clients[0]
    assert torch.equal(one.memory["own"], one.row)
    one.train_locally(rounds.case, rounds.algorithm, 0)
    assert torch.equal(one.memory["own"], one.row)  # v = w: the penalty's gradient is zero


def test_only_shared_parameters_are_drawn_to_the_global_model(prepared):
    rounds = prepared(*SETTINGS)
    one, case = rounds.clients[0], rounds.case
    start = one.row.clone()
    one.memory["own"] += 1.0
    moved = one.memory["own"].clone()
    one.train_locally(case, rounds.algorithm, 0)
    step = -0.25 * gradient_at(rounds, moved, step=1)
    expected = moved + step
    one.shared.unpack(one.shared.pack(moved + step - 0.25 * 2.0 * (moved - start)), expected)
    trained = slice(one.model.trained)
    torch.testing.assert_close(one.memory["own"][trained], expected[trained])
    assert not torch.equal(one.row, start)
