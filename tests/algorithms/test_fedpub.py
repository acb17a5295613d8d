"""FED-PUB's weights, random graph and masks by hand; what travels, what is evaluated, what is kept."""

import math

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedpub import random_graph
from fedmpi.algorithms.program import Tensors
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.options import GcnOptions, GinOptions, SageOptions
from tests.algorithms.programs import gradient_at, named
from tests.making import flat


def test_weights_grow_with_the_cosine_of_the_states():
    """The second client is at 45 degrees to both others, which are opposite; rows up to a factor."""
    table = np.array([[3, 0], [0, 2], [-1, 0]], np.float32)
    found = named("fedpub", tau=2.0).mixed({"state": table})
    shares = found / found.sum(axis=1, keepdims=True)
    first = np.exp([2.0, 0.0, -2.0])
    np.testing.assert_allclose(shares[0], first / first.sum())
    second = np.exp([0.0, 2.0, 0.0])
    np.testing.assert_allclose(shares[1], second / second.sum())
    assert np.ptp(named("fedpub", tau=0.0).mixed({"state": table})) == 0


def test_the_random_graph_has_parts_without_edges_between_them():
    topology, features = random_graph(7, 3, 4, 50, 0.2)
    rows = np.repeat(np.arange(200), np.diff(topology.row_ptr))
    assert topology.graph_ptr.tolist() == [0, 200]
    assert np.array_equal(rows // 50, topology.columns // 50)
    matrix = np.zeros((200, 200), bool)
    matrix[rows, topology.columns] = True
    assert np.array_equal(matrix, matrix.T) and not matrix.diagonal().any()
    assert all(np.all(np.diff(topology.columns[rows == row]) > 0) for row in range(200))
    pairs = 4 * 50 * 49
    assert matrix.sum() / pairs == pytest.approx(0.2, abs=5 * math.sqrt(0.16 / (pairs / 2)))
    assert features.shape == (200, 3) and features.dtype == np.float32
    assert abs(features.mean()) < 0.2 and features.std() == pytest.approx(1, abs=0.15)
    assert np.array_equal(random_graph.__wrapped__(7, 3, 4, 50, 0.2)[1], features)
    assert not np.array_equal(random_graph(8, 3, 4, 50, 0.2)[1], features)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (GcnOptions(layers=1), ["lin.weight"]),
        (SageOptions(layers=1), ["lin_l.weight", "lin_r.weight"]),
        (GinOptions(layers=1, norm="batch"), ["first.weight", "second.weight"]),
    ],
)
def test_weight_matrices_have_masks(options, expected):
    names = tuple(slot.name for slot in flat(options).slots)
    layers = ["pre.weight", *(f"conv.0.{name}" for name in expected), "post.weight", "readout.weight"]
    assert sorted(named("fedpub").memory(Tensors(names, names))["mask"].size) == sorted(layers)


SETTINGS = ("algorithm=fedpub", "algorithm.l1=0.01", "algorithm.proximal=0.5")


def test_parameters_and_mask_move_by_the_gradient_at_their_product(prepared_parts):
    """One step of SGD, rate 1/4: theta - g mu / 4 and mu - (g theta + 0.01 sign mu) / 4, g at theta mu.

    The step starts at the received model, where the distance to it has no gradient.
    """
    rounds = prepared_parts(*SETTINGS)
    one, case = rounds.clients[0], rounds.case
    masked, mask = one.memory.layout.parts["mask"], one.memory["mask"]
    assert (mask == 1).all() and len(mask) == masked.size
    mask.copy_(torch.linspace(-0.5, 1.5, len(mask)))
    theta, before, product = one.row.clone(), mask.clone(), one.row.clone()
    masked.unpack(masked.pack(theta) * before, product)
    gradient = gradient_at(rounds, product)
    of_theta = gradient.clone()
    masked.unpack(masked.pack(gradient) * before, of_theta)
    one.train_locally(case, rounds.algorithm, 0)
    torch.testing.assert_close(one.row, theta - 0.25 * of_theta)
    moved = masked.pack(gradient) * masked.pack(theta) + 0.01 * before.sign()
    torch.testing.assert_close(mask, before - 0.25 * moved)
    assert (mask != before).float().mean() > 0.9


def test_the_distance_to_the_received_model_draws_back(prepared_parts):
    """In the second of two steps the parameters are off by d: the gradient has 2 * 0.5 d more."""
    found = []
    for proximal in (0.0, 0.5):
        rounds = prepared_parts("algorithm=fedpub", f"algorithm.proximal={proximal}", "local_epochs=2")
        one = rounds.clients[0]
        received = one.row.clone()
        one.train_locally(rounds.case, rounds.algorithm, 0)
        found.append(one.row.clone())
    first = prepared_parts("algorithm=fedpub", "algorithm.proximal=0.5")
    first.clients[0].train_locally(first.case, first.algorithm, 0)
    apart = first.clients[0].row - received
    torch.testing.assert_close(found[1], found[0] - 0.25 * apart, rtol=1e-4, atol=1e-6)


def test_small_elements_of_the_mask_are_cut_in_evaluation_and_nothing_masked_travels(prepared_parts):
    rounds = prepared_parts(*SETTINGS)
    one = rounds.clients[0]
    one.memory["mask"].copy_(torch.linspace(-0.02, 0.02, one.memory.layout.parts["mask"].size))
    kept = torch.where(one.memory["mask"].abs() < 0.01, 0.0, one.memory["mask"])
    assert 0.4 < (kept == 0).float().mean() < 0.6
    sent = one.received()
    one.evaluate()
    masked = one.memory.layout.parts["mask"]
    assert torch.equal(masked.pack(one.model.parameters), masked.pack(one.row) * kept)
    assert np.array_equal(one.received(), sent)


def test_a_client_reports_the_mean_state_of_the_random_graph(prepared_parts):
    rounds = prepared_parts(*SETTINGS, "algorithm.size=10")
    one, case = rounds.clients[2], rounds.case
    done = one.train_locally(case, rounds.algorithm, 0)
    topology, features = random_graph(case.seed, one.width, 5, 10, 0.1)
    nodes = np.arange(50)
    batch = Batch.of(GraphSet(topology, features, nodes, np.zeros_like(nodes), places=nodes))
    one.evaluate()  # leaves the masked model in the workspace
    with torch.no_grad():
        states = one.model.module.embed(batch, None)
    assert states.shape == (50, 8) and rounds.states.messages.nbytes == 32
    np.testing.assert_allclose(done.report.view(np.float32), states.mean(dim=0).numpy(), rtol=1e-5)


def test_moments_of_the_mask_are_forgotten_where_the_case_says_so(prepared_parts):
    rounds = prepared_parts("algorithm=fedpub", "optimizer=adam", "optimizer.state=reset")
    one, case = rounds.clients[0], rounds.case
    for round in range(2):
        one.train_locally(case, rounds.algorithm, round)
    assert one.moments["mask"].steps == 1
    assert len(one.state(kept=False)) == rounds.states.layouts()[0].size
