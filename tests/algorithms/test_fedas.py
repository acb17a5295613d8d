"""FedAS by hand: prototypes, the distance from them, a step of the alignment, traces and their weights."""

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedas import class_means, distance
from tests.algorithms.programs import gradient_at, named, server_of


def test_prototypes_are_the_means_of_the_classes_that_there_are():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 0.0]])
    found = class_means(rows, np.array([0, 0, 2]))
    assert {label: mean.tolist() for label, mean in found.items()} == {0: [2, 3], 2: [10, 0]}


def test_the_distance_is_a_sum_over_classes_of_mean_squared_differences():
    """Class 0: (1 + 1 + 1 + 1) / 4 + 0; class 1: (9 + 0) / 2."""
    current = torch.tensor([[1.0, 1.0], [3.0, 3.0], [3.0, 5.0]])
    prototypes = {0: torch.tensor([2.0, 2.0]), 1: torch.tensor([0.0, 5.0])}
    assert float(distance(current, torch.tensor([0, 0, 1]), prototypes)) == 5.5


def test_updates_weigh_by_the_traces():
    server, made = server_of([0, 0], reports={"trace": np.array([1.0, 3.0])})
    named("fedas").decide(server)
    members, weights, divisor = made["weigh"]
    assert (members.tolist(), (weights / divisor).tolist()) == ([0, 1], [0.25, 0.75])


def test_clients_without_information_weigh_the_same():
    server, made = server_of([0, 0], reports={"trace": np.zeros(2)})
    named("fedas").decide(server)
    assert (made["weigh"][1] / made["weigh"][2]).tolist() == [0.5, 0.5]


def test_the_trace_is_the_squared_gradient_at_the_trained_model(prepared):
    rounds = prepared("algorithm=fedas")
    one = rounds.clients[0]
    done = one.train_locally(rounds.case, rounds.algorithm, 0)
    gradient = gradient_at(rounds, one.row)
    assert done.numbers == (pytest.approx(float(gradient.square().sum()), rel=1e-5),)
    assert torch.equal(one.memory["last"], one.row)


def second_round(prepared, kernels):
    """Return a client, its model before and after its second training; it receives its body times 1.01."""
    rounds = prepared("algorithm=fedas", f"kernels={kernels}", "optimizer.lr=0.001")
    one = rounds.clients[0]
    one.train_locally(rounds.case, rounds.algorithm, 0)
    last = one.row.clone()
    one.shared.unpack(1.01 * one.shared.pack(last), one.row)
    received = one.row.clone()
    one.train_locally(rounds.case, rounds.algorithm, 1)
    return rounds, last, received, one.row.clone()


def test_the_received_body_goes_a_step_towards_the_last_ones_prototypes_and_trains(prepared):
    rounds, last, received, trained = second_round(prepared, "csr")
    one, module = rounds.clients[0], rounds.clients[0].model.module
    batch = one.passes.batch(None)

    def embedded(parameters):
        one.model.parameters.copy_(parameters)
        return module.embed(batch, None, "csr")

    prototypes = class_means(embedded(last).detach(), one.passes.train.labels)
    one.model.gradient.zero_()
    distance(embedded(received), batch.labels, prototypes).backward()
    aligned = received - 0.001 * one.model.gradient
    assert not torch.equal(aligned, received)
    torch.testing.assert_close(trained, aligned - 0.001 * gradient_at(rounds, aligned, round=1, step=1))


def test_the_compiled_kernels_align_alike(prepared):
    *_, by_csr = second_round(prepared, "csr")
    *_, compiled = second_round(prepared, "compiled")
    torch.testing.assert_close(compiled, by_csr, rtol=1e-4, atol=1e-5)
