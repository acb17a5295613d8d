import numpy as np
import pytest
import torch

from tests.algorithms.programs import named

FEDAVG = named("fedavg")


def test_fedprox_adds_mu_times_the_distance():
    gradient = torch.tensor([1.0, 1.0])
    model, received = torch.tensor([3.0, 0.0]), torch.tensor([1.0, 1.0])
    named("fedprox", mu=0.5).change(gradient, model, received, {})
    assert gradient.tolist() == [2.0, 0.5]


def test_fedavg_has_one_group_and_self_train_one_each():
    assert FEDAVG.groups(3).tolist() == [0, 0, 0]
    assert named("self-train").groups(3).tolist() == [0, 1, 2]


def test_the_next_model_is_rounded_once():
    model = FEDAVG.update(np.array([1.0], np.float32), np.array([2.0**-30]), 1)
    assert model.dtype == np.float32
    assert model.tolist() == [1.0]


@pytest.mark.parametrize(("fraction", "count"), [(1.0, 10), (0.5, 5), (0.25, 3), (0.01, 1)])
def test_a_round_samples_the_stated_share_without_repeats(fraction, count):
    chosen = FEDAVG.participants(7, 3, 10, fraction)
    assert len(set(chosen.tolist())) == count
    assert chosen.tolist() == sorted(chosen.tolist())


def test_all_clients_get_their_turn_and_the_draw_repeats():
    draws = [FEDAVG.participants(7, round, 10, 0.3).tolist() for round in range(60)]
    assert {client for draw in draws for client in draw} == set(range(10))
    assert draws == [FEDAVG.participants(7, round, 10, 0.3).tolist() for round in range(60)]
