"""FedNova's Eq. 6 to 8 with numbers worked out by hand."""

import numpy as np
import pytest

from tests.algorithms.programs import named, server_of


def weights(samples, steps):
    reports = {"steps": np.array(steps, float)}
    server, made = server_of([0] * len(samples), samples=np.array(samples), reports=reports)
    named("fednova").decide(server)
    members, weights, divisor = made["weigh"]
    assert members.tolist() == list(range(len(samples)))
    return (weights / divisor).tolist()


def test_a_client_of_many_steps_weighs_less():
    # p = (1/4, 3/4), tau_eff = 2/4 + 3 * 4/4 = 3.5; 3.5 * (1/4) / 2 and 3.5 * (3/4) / 4
    assert weights([10, 30], [2, 4]) == [0.4375, 0.65625]


def test_equal_steps_give_fedavg():
    assert weights([1, 3, 4], [5, 5, 5]) == pytest.approx([1 / 8, 3 / 8, 4 / 8], rel=1e-15)


def test_one_client_moves_the_server_by_its_own_update():
    assert weights([7], [3]) == [1.0]
