"""APFL's Algorithm 1: the local model's step at the mixture, alpha's, and the global model as FedAvg's."""

import pytest
import torch

from fedmpi.algorithms.apfl import next_share
from fedmpi.algorithms.program import Tensors
from tests.algorithms.programs import gradient_at, named


def test_alpha_goes_down_the_slope_and_stays_a_share():
    assert named("apfl", alpha=0.25).memory(Tensors((), ()))["share"].start == 0.25
    assert next_share(0.5, 2.0, 0.125) == 0.25
    assert next_share(0.5, 8.0, 0.125) == 0.0
    assert next_share(0.5, -8.0, 0.125) == 1.0


@pytest.fixture
def trained(prepared):
    """Return a client after one step from w and v = w + 0.01, the gradients at w and at the mixture, and w, v."""
    adaptive = ("algorithm.alpha=0.25", "algorithm.adaptive=true")
    rounds = prepared("algorithm=apfl", *adaptive, "optimizer.lr=0.01")
    one, case = rounds.clients[0], rounds.case
    one.memory["own"][: one.model.trained] += 0.01
    w, v = one.row.clone(), one.memory["own"].clone()
    gradients = [gradient_at(rounds, parameters) for parameters in (w, 0.25 * v + 0.75 * w)]
    one.train_locally(case, rounds.algorithm, 0)
    return one, gradients, w, v


def test_w_steps_by_its_own_gradient_and_v_by_alpha_times_the_mixtures(trained):
    one, (own, mixed), w, v = trained
    torch.testing.assert_close(one.row, w - 0.01 * own)
    torch.testing.assert_close(one.memory["own"], v - 0.01 * 0.25 * mixed)


def test_alpha_moves_by_the_mixtures_gradient_along_v_minus_w(trained):
    one, (_, mixed), w, v = trained
    slope = float((v - w) @ mixed)
    assert 0 < 0.25 - 0.01 * slope < 1 and slope != 0
    assert float(one.memory["share"]) == pytest.approx(0.25 - 0.01 * slope, rel=1e-5)


def test_the_mixture_is_evaluated(trained):
    one, *_ = trained
    share = float(one.memory["share"])
    expected = share * one.memory["own"] + (1 - share) * one.row
    one.evaluate()
    torch.testing.assert_close(one.model.parameters, expected)
