"""q-FedAvg's Algorithm 2 with numbers worked out by hand."""

import numpy as np
import pytest

from tests.algorithms.programs import named, server_of


def weights(q, losses, norms, lr=0.5):
    reports = {"received_loss": np.array(losses, float), "delta_norm": np.array(norms, float)}
    server, made = server_of([0] * len(losses), lr=lr, reports=reports)
    named("q-fedavg", q=q).decide(server)
    _, weights, divisor = made["weigh"]
    return (weights / divisor).tolist()


def test_the_step_is_the_papers():
    # L = 2, F = (1, 3), |w - w_i| = (1, 2): h = (2^2 * 1 + 2 * 1, 2^2 * 4 + 2 * 3) = (6, 22), and the server
    # moves by (2 * 1 delta_1 + 2 * 3 delta_2) / 28.
    assert weights(1, [1, 3], [1, 2]) == pytest.approx([2 / 28, 6 / 28], rel=1e-9)


def test_a_power_of_two_squares_the_losses():
    # h = (2 * 1 * 4 + 2 * 1, 2 * 3 * 16 + 2 * 9) = (10, 114)
    assert weights(2, [1, 3], [1, 2]) == pytest.approx([2 / 124, 18 / 124], rel=1e-9)


def test_without_fairness_all_updates_weigh_the_same():
    assert weights(0, [1, 3, 100], [1, 2, 50]) == pytest.approx([1 / 3] * 3)


def test_losses_of_zero_and_large_powers_stay_in_range():
    assert weights(1, [0, 0], [0, 0]) == [0.5, 0.5]
    small, large = weights(300, [1e-9, 1e9], [1e-3, 1e-3])
    assert (small, large) == (0.0, pytest.approx(1.0, rel=1e-6))
