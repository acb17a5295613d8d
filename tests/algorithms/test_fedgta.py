"""FedGTA's confidence, moments and means by hand; what travels, what counts, who keeps which model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedgta import smoothing_confidence
from fedmpi.algorithms.program import Nodes
from fedmpi.client.torch_passes import counts_of
from fedmpi.errors import RankFailed
from fedmpi.models.flops import MessagePassingFlops
from fedmpi.models.options import GcnOptions, Shape
from tests.algorithms.programs import client_of, named, run_round


def statistics(**options):
    """Return those of two linked nodes: predictions (3/4, 1/4) of the first, class 0 known of the second.

    Rows of A + I are (1, 1), of sum 2: a step of propagation takes both rows to their mean.
    """

    def propagate(rows):
        return np.repeat(rows.mean(axis=0, keepdims=True), 2, axis=0).astype(np.float32)

    logits = np.array([[math.log(3), 0], [-4, 9]], np.float32)
    one = np.ones(2, np.int64)
    nodes = Nodes(logits, one, np.array([1]), np.array([0]), propagate)
    client = client_of(nodes=lambda: nodes)
    named("fedgta", **options).trained(client)
    for name, message in named("fedgta", **options).messages(GcnOptions(), 2).items():
        assert (client.sent[name].shape, client.sent[name].dtype) == (message.shape, message.dtype)
    return np.concatenate([client.sent["confidence"], client.sent["moments"]])


def test_moments_are_those_of_the_propagated_labels():
    """The mean of both rows is (7/8, 1/8), so Y(1) has the rows (13/16, 3/16) and (15/16, 1/16)."""
    found = statistics(steps=1, alpha=0.5, order=2, moments="both")
    raw = [0.875, 0.125, (13**2 + 15**2) / 512, (3**2 + 1**2) / 512]
    assert found[1:] == pytest.approx([*raw, 1 / 256, 1 / 256], rel=1e-6)
    central = statistics(steps=1, order=3, moments="central")
    assert central[1:] == pytest.approx([1 / 256, 1 / 256, 0, 0], abs=1e-7)
    assert statistics(steps=1, order=2, moments="raw")[1:] == pytest.approx(raw, rel=1e-6)


def test_alpha_is_the_share_of_the_first_labels():
    assert statistics(steps=3, alpha=1.0, order=1, moments="raw")[1:] == pytest.approx([0.875, 0.125])
    two = statistics(steps=2, alpha=0.25, order=2, moments="central")
    # the mean of both rows stays, a quarter of their distance
    assert two[1] == pytest.approx((0.25 / 8) ** 2)


def test_confidence_weighs_nodes_by_degree_and_is_least_at_one_over_e():
    """0.75 log 0.75 + 0.25 log 0.25 = -0.562335; the second node's labels are 1 and 0."""
    assert statistics(steps=0)[0] == pytest.approx(2 * (4 / math.e - 0.5623351), rel=1e-6)
    least = smoothing_confidence(np.full((3, 2), 1 / math.e), np.array([1, 2, 3]))
    certain = smoothing_confidence(np.eye(2), np.array([1, 5]))
    assert (least, certain) == (pytest.approx(0, abs=1e-12), pytest.approx(6 * 2 / math.e))


def test_clients_whose_moments_are_similar_count_by_their_confidence():
    """The second client is at 45 degrees to both others, which are at a right angle."""
    table = np.array([[2, 1, 0], [6, 1, 1], [5, 0, 1]], np.float32)
    found = named("fedgta", epsilon=0.5).mixed({"confidence": table[:, :1], "moments": table[:, 1:]})
    assert found.tolist() == [[2, 6, 0], [2, 6, 5], [0, 6, 5]]
    alone = named("fedgta", epsilon=0.8).mixed({"confidence": table[:, :1], "moments": table[:, 1:]})
    assert alone.tolist() == [[2, 0, 0], [0, 6, 0], [0, 0, 5]]


def test_the_next_model_of_each_client_is_a_mean_with_its_own_weights(prepared_parts, monkeypatch):
    rounds = prepared_parts("algorithm=fedgta")
    sent, results = run_round(rounds, monkeypatch)
    shares = results["client_weights"]
    assert (shares == 0).any() and not (shares == np.eye(3)).all()  # some clients are alike, not all
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    models = np.stack([sent[number] for number in range(3)]).astype(np.float64)
    for number, client in rounds.clients.items():
        expected = np.average(models, axis=0, weights=shares[number])
        np.testing.assert_allclose(client.shared.pack(client.row).numpy(), expected, rtol=1e-6, atol=1e-7)
    assert results["group"].tolist() == [0, 1, 2]


def test_a_client_that_sits_out_keeps_its_model(prepared_parts, monkeypatch):
    rounds = prepared_parts("algorithm=fedgta", "participation=0.67")
    before = {number: client.row.clone() for number, client in rounds.clients.items()}
    sent, results = run_round(rounds, monkeypatch)
    (idle,) = set(rounds.clients) - set(sent)
    assert torch.equal(rounds.clients[idle].row, before[idle])
    known = np.isfinite(results["client_weights"])
    assert known.sum() == 4 and not known[idle].any() and not known[:, idle].any()


def test_outputs_and_sums_are_of_all_nodes_of_the_part(prepared_parts):
    """Against dense products, with the network run on one node at a time as the held-out examples are."""
    rounds = prepared_parts("algorithm=fedgta")
    one, work = rounds.clients[1], []
    nodes = one.passes.nodes(work)
    batch = one.passes.batch(None)
    count = batch.topology.num_nodes
    assert nodes.logits.shape == (count, one.model.module.readout.out_features)
    with torch.no_grad():
        known = one.model.module(batch, None).numpy()
    np.testing.assert_allclose(nodes.logits[nodes.places], known, rtol=1e-5, atol=1e-6)
    assert np.array_equal(nodes.labels, batch.labels.numpy()) and len(nodes.labels) < count
    dense = np.eye(count)
    dense[np.repeat(np.arange(count), nodes.degrees), batch.topology.columns] = 1
    roots = 1 / np.sqrt(dense.sum(axis=1))
    rows = np.random.default_rng(0).random((count, 3))
    expected = (roots[:, None] * dense * roots) @ rows
    np.testing.assert_allclose(nodes.propagate(rows), expected, rtol=1e-5)
    assert work[1].model_flops == 3 * dense.sum()


def test_graphs_as_examples_have_no_outputs_of_nodes(prepared):
    rounds = prepared("algorithm=fedavg", "kernels=csr")
    with pytest.raises(RankFailed, match="examples are no nodes"):
        rounds.clients[0].passes.nodes([])


def test_the_pass_and_the_sums_count_as_the_clients(prepared_parts):
    """Beside those of FedAvg: a forward pass with every node as an example, and five propagations."""
    done, one = [], None
    for name in ("fedavg", "fedgta"):
        rounds = prepared_parts(f"algorithm={name}")
        one = rounds.clients[0]
        done.append(one.train_locally(rounds.case, rounds.algorithm, 0))
    counted, classes = counts_of(one.passes.batch(None)), one.model.module.readout.out_features
    formula = MessagePassingFlops(rounds.case.model, Shape(one.width, classes))
    passed = formula.forward(replace(counted, examples=counted.nodes)).total
    sums = 5 * (counted.edges + counted.nodes) * classes
    assert done[1].model_flops - done[0].model_flops == passed + sums
    assert done[1].loss == done[0].loss
