"""FedTAD's reliabilities by hand, and its server: what it draws, keeps and moves."""

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedtad import generator_size, reliability, shares_of
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.distillation import NodeGenerator
from fedmpi.models.dropout import DropoutStreams
from tests.algorithms.programs import run_round
from tests.making import packed

FEATURES = np.array([[1, 0], [1, 0], [0, 1]], np.float32)


def path(*classes):
    """Return three nodes in a row, with the classes of the last ones, which are training nodes."""
    nodes = np.arange(3)
    labels, places = np.array(classes), nodes[3 - len(classes) :]
    return GraphSet(packed((3, [(0, 1), (1, 2)])), FEATURES, nodes, labels, places=places)


def test_a_client_is_reliable_of_a_class_whose_nodes_are_like_their_neighbours():
    """Cosines 1 and 0 of both edges; with the node itself the means are (1 + 1) / 2, (1 + 1) / 3 and 1 / 2."""
    assert reliability(path(0, 1, 1), 3, 1).tolist() == pytest.approx([1, 2 / 3 + 1 / 2, 0])
    assert reliability(path(1, 0), 2, 1).tolist() == pytest.approx([1 / 2, 2 / 3])


def test_returns_of_walks_are_features_of_a_node():
    """After two steps: 1/2, 1, 1/2; so the cosines are 1.5 / sqrt(1.25 * 2) and 0.5 / sqrt(1.25 * 2)."""
    near, far = 1.5 / np.sqrt(2.5), 0.5 / np.sqrt(2.5)
    expected = [(1 + near) / 2, (1 + near + far) / 3, (1 + far) / 2]
    assert reliability(path(0, 1, 2), 3, 2).tolist() == pytest.approx(expected)


def test_each_class_is_shared_out_between_those_that_have_it():
    assert shares_of(np.array([[1, 0, 2], [3, 0, 0]], np.float32)).tolist() == [[0.25, 0, 1], [0.75, 0, 0]]


def test_the_server_keeps_as_many_numbers_as_the_generator_has():
    found = sum(each.numel() for each in NodeGenerator(32, 10, 4, (64, 128, 256)).parameters())
    assert generator_size(32, 10, 4) == found


def test_without_pseudo_graphs_it_is_fedavg(prepared_parts, monkeypatch):
    rounds = prepared_parts("algorithm=fedtad", "algorithm.graphs=0")
    start = rounds.clients[0].row.clone()
    sent, _ = run_round(rounds, monkeypatch)
    updates = np.stack([sent[number] for number in range(3)]).astype(np.float64)
    mean = np.average(updates, axis=0, weights=rounds.weights)
    one = rounds.clients[1]
    expected = one.shared.pack(start).numpy() + mean
    np.testing.assert_allclose(one.shared.pack(one.row).numpy(), expected, rtol=1e-6, atol=1e-7)


def test_the_generator_goes_on_and_the_global_model_moves_towards_the_clients(prepared_parts, monkeypatch):
    """Adam's steps are as long as its rate at most; of three pseudo graphs with two steps each."""
    rate = 0.01
    settings = "algorithm.graphs=3", "algorithm.model_steps=2", f"algorithm.model_lr={rate}"
    plain, rounds = (
        prepared_parts("algorithm=fedtad", "algorithm.graphs=0"),
        prepared_parts("algorithm=fedtad", *settings),
    )
    for each in (plain, rounds):
        run_round(each, monkeypatch)
    moved = rounds.clients[0].row - plain.clients[0].row
    assert 0 < float(moved.abs().max()) <= 3 * 2 * rate * 1.01
    kept = rounds.algorithm.algorithm.server
    assert (kept["generator_steps"].tolist(), kept["model_steps"].tolist()) == ([3], [6])
    assert kept["generator"].any() and kept["model_first"].any() and kept["generator_second"].all()


def test_the_servers_network_is_the_clients(prepared_parts):
    """Of all nodes of a client's part, by the vector that travels."""
    rounds = prepared_parts("algorithm=fedtad")
    one = rounds.clients[0]
    batch, network = one.passes.batch(None), rounds.algorithm.algorithm.network
    assert (network.width, network.classes) == (one.width, 4)
    vector = one.shared.pack(one.row).requires_grad_()
    found = network.outputs(vector, batch.topology, batch.features)[batch.places]
    one.model.parameters.copy_(one.row)
    torch.testing.assert_close(found, one.model.module(batch, None))
    torch.nn.functional.cross_entropy(found, batch.labels).backward()
    one.passes.step(batch, DropoutStreams(1, 0, 0, 0))
    torch.testing.assert_close(vector.grad, one.shared.pack(one.model.gradient), rtol=1e-4, atol=1e-6)
