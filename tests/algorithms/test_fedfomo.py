"""FedFomo's Eq. 4 to 6 by hand: weights, the merged model, the affinity, and who gets which models."""

import math

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedfomo import choose, weight
from fedmpi.models.flat import SharedPart
from tests.algorithms.programs import begin, client_of, named, run_round, server_of

NAN = float("nan")


def test_a_weight_is_the_gain_by_the_distance():
    assert weight(1.0, 4.0) == 0.25
    assert weight(-1.0, 4.0) == -0.25
    assert [weight(*pair) for pair in ((1.0, 0.0), (NAN, 1.0), (-math.inf, 1.0), (1.0, math.inf))] == [
        0.0
    ] * 4


def merging(models, clients, *, own=1.0, begun=(0.0, 0.0)):
    """Return a client that had trained to [3, 4], with loss `own`, and got these models, after its next training."""
    losses = {(0.0, 0.0): 2.0, (0.0, 2.0): 1.4, (1.0, 0.0): 2.5, (3.0, 4.0): own}
    client = client_of(
        model=torch.tensor([3.0, 4.0]), trained=2, shared=SharedPart(((0, 2),), 2),
        memory={"begun": torch.tensor(begun)},
        incoming={"models": models and torch.tensor(models), "clients": clients and torch.tensor(clients)},
        validation_loss=lambda at: losses[tuple(at.tolist())], run_epochs=lambda: None,
    )  # fmt: skip
    named("fedfomo", models=3).train(client)
    return client


def test_what_lowers_the_loss_is_merged():
    """Weights 1 / 5, 0.6 / 2 and -0.5: the model is 0.4 [3, 4] + 0.6 [0, 2]."""
    client = merging([[0.0, 2.0], [1.0, 0.0], [NAN, NAN]], [4.0, 2.0, -1.0])
    assert client.model.tolist() == pytest.approx([1.2, 2.8])
    assert client.sent["weights"].tolist() == pytest.approx([0.3, -0.5, 0.0])
    assert client.memory["begun"].tolist() == client.model.tolist()


def test_without_others_the_own_model_is_taken_where_it_is_better():
    assert merging(None, None).model.tolist() == [3.0, 4.0]
    assert merging(None, None, own=3.0).model.tolist() == [0.0, 0.0]


def test_a_client_that_has_not_trained_yet_merges_others_into_its_first_model():
    """Its own model is theta_i, and has no weight."""
    client = merging([[0.0, 2.0], [1.0, 0.0]], [4.0, 2.0], own=2.0, begun=(3.0, 4.0))
    assert client.model.tolist() == [0.0, 2.0]
    assert merging([[1.0, 0.0]], [2.0], own=2.0, begun=(3.0, 4.0)).model.tolist() == [3.0, 4.0]


def test_the_largest_affinities_are_chosen_or_random_ones():
    affinity, draws = np.array([9.0, 0.5, -1.0, 0.7, 0.6]), np.random.default_rng(1)
    others = np.array([1, 2, 3, 4])
    assert choose(affinity, others, 3, 0.0, draws).tolist() == [3, 4, 1]
    assert sorted(choose(affinity, others, 9, 1.0, draws).tolist()) == [1, 2, 3, 4]
    assert len({tuple(choose(affinity, others, 2, 1.0, draws).tolist()) for _ in range(60)}) == 12
    assert len({int(choose(np.zeros(5), others, 1, 0.0, draws)[0]) for _ in range(60)}) == 4


def test_weights_are_added_to_the_affinity_and_everyone_is_told_models_of_others():
    """Of three clients the last sat out; the first had got a model of client 2, the second none."""
    algorithm, told = named("fedfomo", models=2, epsilon=0.0), {}
    begin(algorithm, 2, 3)
    algorithm.server["sent"][0] = [2, -1]
    messages = {"model": np.float32([[1, 2], [3, 4]]), "weights": np.float32([[-0.25, 0], [0, 0]])}
    server, _ = server_of([0, 0], messages=messages, seed=0, round=1, tell=told.__setitem__)
    algorithm.decide(server)
    assert algorithm.server["affinity"].tolist() == [[1, 0, -0.25], [0, 1, 0], [0, 0, 1]]
    assert told["clients"][:2].tolist() == [[1, -1], [0, -1]]
    assert sorted(told["clients"][2].tolist()) == [0, 1]
    np.testing.assert_array_equal(told["models"][0], [[3, 4], [NAN, NAN]])
    by_client = dict(zip(told["clients"][2].tolist(), told["models"][2].tolist(), strict=True))
    assert by_client == {0: [1, 2], 1: [3, 4]}


def test_each_client_gets_models_of_its_own(prepared, monkeypatch):
    """A model, a weight and a client's number have 4 bytes an element."""
    rounds = prepared("algorithm=fedfomo", "algorithm.models=1", "share=all")
    _, results = run_round(rounds, monkeypatch)
    shared = rounds.clients[0].shared
    for number, client in rounds.clients.items():
        (other,) = client.told["clients"].int().tolist()
        assert other != number
        assert torch.equal(client.told["models"][0], shared.pack(rounds.clients[other].row))
    assert results["client_bytes_up"].tolist() == [4 * (shared.size + 1)] * 3
    assert results["client_bytes_down"].tolist() == [4 * (shared.size + 1)] * 3
