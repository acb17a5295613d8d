"""FLIT's weights by hand, two of its steps, and FLIT+'s gradient against its definition."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedmpi.algorithms.flit import next_scale, weights
from fedmpi.client.program_batch import Batch
from fedmpi.client.trainee import Trainee
from fedmpi.models.dropout import DropoutStreams
from tests.algorithms.programs import named


def test_a_weight_is_a_power_of_one_minus_an_exponential():
    unsure = torch.tensor([math.log(2), 2 * math.log(2)])
    assert weights(unsure, torch.tensor([1.0]), 2.0).tolist() == pytest.approx([1 / 4, 9 / 16], abs=1e-6)
    assert weights(4 * unsure, torch.tensor([2.0]), 1.0).tolist() == pytest.approx([3 / 4, 15 / 16], abs=1e-6)


def test_the_scale_of_a_task_is_a_decaying_mean_over_its_labels():
    """Of three tasks the last begins late, and the second has no label in the second batch."""
    known = torch.tensor([[True, True, False], [True, False, False]])
    first = next_scale(None, torch.tensor([[1.0, 4.0, 9.0], [3.0, 9.0, 9.0]]), known)
    assert first.tolist() == [[2.0, 4.0, 0.0]]
    second = next_scale(first, torch.full((1, 3), 7.0), torch.tensor([[True, False, True]]))
    assert second[0].tolist() == pytest.approx([0.8 * 2 + 0.2 * 7, 4.0, 7.0])


def test_phi_is_a_loss_and_its_excess_over_the_received_models():
    own, theirs = [torch.tensor([1.0, 3.0])], [torch.tensor([2.0, 1.0])]
    assert named("flit").unsure(own, theirs).tolist() == [1, 5]
    own.append(torch.tensor([0.5, 0.25]))
    theirs.append(torch.tensor([0.0, 0.75]))
    plus = named("flit-plus", confidence=4.0, smoothing=2.0)
    assert plus.unsure(own, theirs).tolist() == [1 + 4 * 1.0, 5 + 4 * 0.25]
    assert plus.objective(own).tolist() == [2.0, 3.5]


class Square:
    """A batch of one example: the output is the model's one parameter, its loss the output's square."""

    labels = torch.tensor([0])

    def losses(self, outputs, labels=None):
        return outputs.square()

    def soft_labels(self, outputs):
        return outputs


class Descent:
    """A client of two such batches, which steps by a quarter of the gradient."""

    def __init__(self):
        self.model = torch.tensor([1.0])

    def batches(self):
        return [Square(), Square()]

    def outputs(self, batch, at):
        return at

    def gradient(self, batch, *, reported, loss, beside):
        assert reported and beside == ()
        model = self.model.clone().requires_grad_()
        loss(model).backward()
        return model.grad

    def step(self, model, gradient):
        model.sub_(gradient, alpha=0.25)


def test_two_steps_by_hand():
    """The gradient goes through the weight, and not through d: of (1 - exp(-x^2 / d)) x^2 it is
    2 x (1 - exp(-x^2 / d)) + 2 x^3 / d exp(-x^2 / d), with d = 1 and then d = 0.8 + 0.2 x^2."""
    client = Descent()
    named("flit", gamma=1.0).train(client)
    first = 1 - 0.25 * (2 * (1 - math.exp(-1)) + 2 * math.exp(-1))
    assert first == 0.5
    power = math.exp(-0.25 / 0.85)
    second = 0.5 - 0.25 * ((1 - power) + 0.25 / 0.85 * power)
    assert client.model.item() == pytest.approx(second, abs=1e-5)


def test_without_gamma_it_is_fedavg(prepared):
    settings = "kernels=csr", "local_epochs=2"
    one, plain = (
        prepared("algorithm=flit", "algorithm.gamma=0", *settings),
        prepared("algorithm=fedavg", *settings),
    )
    for rounds in (one, plain):
        rounds.clients[0].train_locally(rounds.case, rounds.algorithm, 0)
    torch.testing.assert_close(one.clients[0].row, plain.clients[0].row)


def test_r_is_as_long_as_asked_and_points_where_outputs_change_most(prepared):
    rounds = prepared("algorithm=flit-plus", "algorithm.epsilon=0.5", "kernels=csr")
    batch, client, plus = on_all_graphs(rounds)
    (moved,) = plus.around(client, batch, client.model)
    shift = moved.features - batch.features
    torch.testing.assert_close(shift.norm(dim=1), torch.full((len(shift),), 0.5))
    wanted = batch.soft_labels(client.outputs(batch))

    def change(by):
        return float((batch.losses(client.outputs(batch.moved(by)), wanted) - entropy(wanted)).sum())

    flipped = shift * torch.ones(len(shift)).bernoulli_(generator=torch.Generator().manual_seed(1))[:, None]
    assert change(shift) > 2 * change(shift - 2 * flipped) > 0


def test_a_step_goes_down_the_weighted_losses(prepared):
    """The first step's gradient, here from the definitions: the received model is the client's own."""
    settings = ("algorithm.epsilon=0.5", "algorithm.confidence=0.3", "algorithm.smoothing=2.0")
    rounds = prepared("algorithm=flit-plus", *settings, "kernels=csr")
    batch, client, plus = on_all_graphs(rounds)
    (moved,) = plus.around(client, batch, client.model)
    one, module = rounds.clients[0], rounds.clients[0].model.module
    outputs, others = (module(each.prepared, None) for each in (batch, moved))
    loss = cross_entropy(outputs, batch.labels, reduction="none")
    change = cross_entropy(others, outputs.detach().softmax(dim=1), reduction="none")
    phi = loss + 0.3 * change
    one.model.gradient.zero_()
    ((1 - (-phi / phi.mean().detach()).exp()).sqrt() * (loss + 2 * change)).mean().backward()
    expected, start = one.model.gradient.clone(), one.row.clone()
    one.train_locally(rounds.case, rounds.algorithm, 0)
    torch.testing.assert_close(one.row, start - 0.25 * expected, rtol=1e-4, atol=1e-6)


def test_passes_beside_the_batch_leave_no_running_statistics(prepared):
    found = []
    for name in ("flit", "flit-plus"):
        rounds = prepared(f"algorithm={name}", "kernels=csr", "model.norm=batch")
        one = rounds.clients[0]
        one.train_locally(rounds.case, rounds.algorithm, 0)
        found.append(one.row[one.model.trained :].clone())
    assert torch.equal(*found) and found[0].any()


def entropy(rows):
    """Return the cross-entropy of probabilities with themselves, [B]."""
    return -(rows * rows.log()).sum(dim=1)


def on_all_graphs(rounds):
    """Return the batch of a client's training graphs, a client as its program sees it, and the algorithm."""
    one = rounds.clients[0]
    one.model.parameters.copy_(one.row)
    trainee = Trainee(one, rounds.case, rounds.algorithm, 0)
    streams = DropoutStreams(rounds.case.seed, 0, 0, 0)
    return Batch(trainee, one.passes.batch(None), None, streams), trainee, rounds.algorithm.algorithm
