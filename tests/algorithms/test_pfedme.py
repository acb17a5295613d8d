"""pFedMe's Algorithm 1 by hand: K steps of the personal model, the step of the client's copy, and the server's."""

import numpy as np
import pytest
import torch

from tests.algorithms.programs import begin, client_of, gradient_at, named


def test_the_personal_model_goes_k_steps_and_the_copy_one_towards_it():
    """With lambda = 2 and steps of 1/8: theta = [2, 0] - [1, -1] / 8, then - [3/4, -3/4] / 8; w goes half way."""
    asked = []
    client = client_of(
        model=torch.tensor([2.0, 0.0]), memory={"own": torch.tensor([9.0, 9.0])}, trained=2, batches=lambda: ["one"],
        gradient=lambda batch, at, reported: asked.append((batch, reported, at.tolist())) or torch.tensor([1.0, -1.0]),
        step=lambda vector, gradient: vector.sub_(gradient / 8),
    )  # fmt: skip
    named("pfedme", attraction=2.0, steps=2, outer_lr=0.25).train(client)
    assert asked == [("one", True, [2.0, 0.0]), ("one", True, [1.875, 0.125])]
    assert client.memory["own"].tolist() == [1.78125, 0.21875]
    assert client.model.tolist() == [1.890625, 0.109375]


def test_running_statistics_are_those_of_the_personal_models_passes():
    client = client_of(
        model=torch.tensor([2.0, 5.0]), memory={"own": torch.zeros(2)}, trained=1, batches=lambda: [None],
        gradient=lambda batch, at, reported: at[1:].fill_(7.0).new_tensor([1.0, 0.0]),
        step=lambda vector, gradient: vector[:1].sub_(gradient[:1]),
    )  # fmt: skip
    named("pfedme", attraction=0.5, steps=1, outer_lr=0.5).train(client)
    assert client.model.tolist() == [1.75, 7.0]


@pytest.mark.parametrize(("beta", "expected"), [(0.5, [2.0, -3.0]), (1.0, [3.0, -3.0]), (2.0, [5.0, -3.0])])
def test_the_server_goes_beta_of_the_way_to_the_mean(beta, expected):
    """The second element is a running statistic."""
    algorithm = named("pfedme", beta=beta)
    begin(algorithm, 1, 3)
    assert algorithm.update(np.ones(2, np.float32), np.array([2.0, -4.0]), 2).tolist() == expected


def test_a_round_of_one_batch_and_what_is_evaluated(prepared):
    """K = 1: theta = w - 0.25 g(w), and w goes 0.5 * 0.1 of the way to it, in every layer."""
    rounds = prepared(
        "algorithm=pfedme", "algorithm.steps=1", "algorithm.attraction=0.5", "algorithm.outer_lr=0.1"
    )
    one, start = rounds.clients[0], rounds.clients[0].row.clone()
    gradient = gradient_at(rounds, start)
    one.train_locally(rounds.case, rounds.algorithm, 0)
    torch.testing.assert_close(one.memory["own"], start - 0.25 * gradient)
    torch.testing.assert_close(one.row - start, -0.05 * 0.25 * gradient, rtol=1e-3, atol=1e-7)
    one.evaluate()
    assert torch.equal(one.model.parameters, one.memory["own"])
