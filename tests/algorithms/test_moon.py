"""MOON's Eq. 3 by hand, and its gradient through all kernels."""

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from fedmpi.models.dropout import DropoutStreams
from tests.algorithms.programs import named

RIGHT, UP = [1.0, 0.0], [0.0, 2.0]


def loss(current, received, previous, **options):
    return named("moon", **options).contrast(*map(torch.tensor, (current, received, previous)))


def test_the_term_is_the_logarithm_of_a_softmax_of_similarities():
    """A graph at the received model's place and at a right angle to the previous one: -log(e^2 / (e^2 + 1))."""
    near = -math.log(math.exp(2) / (math.exp(2) + 1))
    far = -math.log(1 / (1 + math.exp(2)))
    assert loss([RIGHT], [RIGHT], [UP], mu=3.0).item() == pytest.approx(3 * near)
    assert loss([RIGHT], [UP], [RIGHT]).item() == pytest.approx(far)
    assert loss([RIGHT, UP], [RIGHT, RIGHT], [UP, UP]).item() == pytest.approx((near + far) / 2)
    wide = math.log(1 + math.exp(-0.5))
    assert loss([RIGHT], [RIGHT], [UP], temperature=2.0).item() == pytest.approx(wide)


def test_there_is_no_term_before_there_is_a_previous_model(prepared):
    one, plain = (prepared(f"algorithm={name}", "share=all") for name in ("moon", "fedavg"))
    for rounds in (one, plain):
        rounds.clients[0].train_locally(rounds.case, rounds.algorithm, 0)
    assert torch.equal(one.clients[0].row, plain.clients[0].row)


@pytest.mark.parametrize("model", ["gin", "gcn", "fedstar"])
def test_all_kernels_give_the_same_gradient(prepared, model):
    gradients = []
    for kernels in ("compiled", "csr"):
        settings = (f"kernels={kernels}", f"model={model}", "model.dropout=0.5", "optimizer.lr=0.01")
        rounds = prepared("algorithm=moon", "algorithm.mu=5.0", *settings)
        one, case = rounds.clients[0], rounds.case
        for round in range(2):
            one.train_locally(case, rounds.algorithm, round)
        gradients.append(one.model.gradient.clone())
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_a_step_goes_down_the_loss_with_its_term(prepared):
    """The gradient of a second round is that of loss and term, here by torch from the definitions."""
    rounds = prepared("algorithm=moon", "algorithm.mu=2.0", "kernels=csr")
    one, case = rounds.clients[0], rounds.case
    one.train_locally(case, rounds.algorithm, 0)
    previous = one.row.clone()
    one.row += 0.01
    received, module, batch = one.row.clone(), one.model.module, one.passes.batch(None)
    with torch.no_grad():
        frozen = []
        for parameters in (received, previous):
            one.model.parameters.copy_(parameters)
            frozen.append(module.embed(batch, None))
    one.model.parameters.copy_(received)
    one.passes.step(batch, DropoutStreams(case.seed, 0, 1, 0))
    plain = one.model.gradient.clone()
    one.model.gradient.zero_()
    similar = [cosine_similarity(module.embed(batch, None), rows) / 0.5 for rows in frozen]
    (2.0 * (torch.logaddexp(*similar) - similar[0]).mean()).backward()
    expected = plain + one.model.gradient
    one.train_locally(case, rounds.algorithm, 1)
    torch.testing.assert_close(one.model.gradient, expected)
    assert not torch.allclose(plain, expected, atol=1e-4)
