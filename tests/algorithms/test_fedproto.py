"""FedProto's Eq. 4 to 7 by hand: what travels, the term of the loss, the prediction, and bytes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedproto import global_prototypes, nearest
from fedmpi.algorithms.program import Message
from tests.algorithms.programs import client_of, named

NAN = float("nan")


def test_a_client_sends_the_mean_of_each_class_and_its_size():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 0.0]])
    declared = {"means": Message((3, 2)), "counts": Message((3,), "i4")}
    seen = {"labels": np.array([0, 0, 2]), "shape": lambda name: declared[name].shape}
    client = client_of(embeddings=lambda: rows, **seen)
    named("fedproto").trained(client)
    assert client.sent["means"].tolist() == [[2, 3], [0, 0], [10, 0]]
    assert client.sent["counts"].tolist() == [2, 0, 1]
    for name, message in declared.items():
        assert (client.sent[name].shape, client.sent[name].dtype) == (message.shape, message.dtype)


def test_global_prototypes_are_weighted_by_graphs():
    means = np.array([[[1, 1], [0, 0], [2, 0]], [[5, 1], [0, 0], [0, 0]]], np.float32)
    counts = np.array([[3, 0, 4], [1, 0, 0]])
    found = global_prototypes(means, counts)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[2, 1], [NAN, NAN], [2, 0]])


def test_the_term_is_the_distance_of_the_batchs_class_means():
    """Class 0 has mean [2, 2] and prototype [2, 0], class 1 a prototype at its mean, class 2 none."""
    current = torch.tensor([[1.0, 1.0], [3.0, 3.0], [0.0, 1.0], [9.0, 9.0]])
    prototypes = torch.tensor([[2.0, 0.0], [0.0, 1.0], [NAN, NAN]])
    found = named("fedproto", attraction=3.0).distance(current, torch.tensor([0, 0, 1, 2]), prototypes)
    assert found.item() == pytest.approx(3 * (0 + 4) / 2)
    assert named("fedproto").distance(current[3:], torch.tensor([2]), prototypes) is None


def test_the_nearest_prototype_decides():
    prototypes = torch.tensor([[0.0, 0.0], [NAN, NAN], [2.0, 2.0]])
    assert nearest(torch.tensor([[0.5, 0.0], [2.0, 1.0]]), prototypes).tolist() == [0, 2]


@pytest.mark.parametrize("kernels", ["compiled", "csr"])
def test_held_out_graphs_get_the_class_of_the_nearest_prototype(prepared, kernels):
    rounds = prepared("algorithm=fedproto", f"kernels={kernels}")
    one = rounds.clients[0]
    by_head = one.evaluate()
    one.told["prototypes"][0], one.told["prototypes"][1] = 0.0, 1e6  # all graphs are near class 0
    found = one.evaluate()
    hits = np.concatenate([found.val.hits, found.test.hits])
    assert hits.tolist() == (one.passes.held_out.labels == 0).astype(int).tolist()
    assert np.array_equal(found.test.losses, by_head.test.losses)
    assert found.model_flops == 2 * by_head.model_flops


def test_a_client_sends_its_trained_models_prototypes(prepared):
    rounds = prepared("algorithm=fedproto")
    one, case = rounds.clients[0], rounds.case
    report = one.train_locally(case, rounds.algorithm, 0).report
    one.model.parameters.copy_(one.row)
    rows = np.concatenate([part.rows.copy() for part in one.passes.embedded()])
    labels = one.passes.train.labels
    (means,), (counts,) = rounds.states.messages.read(report[None]).values()
    assert counts.tolist() == np.bincount(labels).tolist()
    np.testing.assert_allclose(means[1], rows[labels == 1].mean(axis=0), rtol=1e-5)


def test_a_class_that_nobody_has_keeps_its_prototype(prepared):
    """Where what the server tells is NaN, clients keep what they have."""
    rounds = prepared("algorithm=fedproto")
    for client in rounds.clients.values():
        client.told["prototypes"].fill_(5.0)
    new = np.full((2, 64), 7.0, np.float32)
    new[1] = NAN
    rounds._planner.decided = SimpleNamespace(told={"prototypes": new})
    rounds._tell()
    for client in rounds.clients.values():
        assert client.told["prototypes"][0].unique().tolist() == [7.0]
        assert client.told["prototypes"][1].unique().tolist() == [5.0]
