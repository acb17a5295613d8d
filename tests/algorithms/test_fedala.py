"""FedALA's Eq. 5 and 6: which layers merge, how the weights move, and from where a client trains."""

import pytest
import torch

from fedmpi.models.flat import SharedPart
from fedmpi.models.options import FedStarOptions, GinOptions
from tests.algorithms.programs import named
from tests.making import flat


def layers(options, number):
    names = tuple(slot.name for slot in flat(options).slots)
    return named("fedala", layers=number).upper(names)


def test_upper_layers_are_the_last_ones_without_normalisation():
    assert layers(GinOptions(), 1) == ("readout.weight", "readout.bias")
    head = ("post.weight", "post.bias", "readout.weight", "readout.bias")
    assert layers(GinOptions(norm="batch+graph"), 2) == head
    assert layers(FedStarOptions(), 1) == ("readout.weight", "readout.bias")
    convolutions = ("conv.0.first.weight", "conv.0.second.weight", "conv.0.second.bias")
    assert named("fedala").upper(convolutions) == convolutions[1:]


class Merging:
    """A client with one batch of gradient [0.5, -1] everywhere; `asked` is where its loss was asked for."""

    def __init__(self, losses, weights=None):
        self.model = torch.tensor([2.0, 0.0])
        self.memory = {"last": torch.tensor([1.0, 2.0]), "weights": weights}
        self.asked, self._left = [], iter(losses)

    def part(self, name):
        return SharedPart(((0, 2),), 2)

    def sample(self, share):
        return [None]

    def gradient(self, batch, at):
        self.asked.append(at.tolist())
        return torch.tensor([0.5, -1.0])

    def loss(self):
        return next(self._left)

    def run_epochs(self):
        self.start = self.model.clone()


def test_weights_move_by_their_gradient_and_stay_shares():
    """The gradient of W is [0.5, -1] * ([2, 0] - [1, 2]) = [0.5, 2], so W = [1, 0.5] - [0.25, 1] = [0.75, 0]."""
    client = Merging([1.0], weights=torch.tensor([1.0, 0.5]))
    named("fedala", weights_lr=0.5).train(client)
    assert client.memory["weights"].tolist() == [0.75, 0.0]
    assert client.asked == [[2.0, 1.0]]  # [1, 2] + [1, -2] * [1, 0.5]
    assert client.start.tolist() == [1.75, 2.0]  # [1, 2] + [1, -2] * [0.75, 0]


@pytest.mark.parametrize(
    ("losses", "epochs"), [([1.0] * 200, 11), ([5.0] * 3 + [1.0] * 200, 13), (list(range(200)), 100)]
)
def test_the_first_training_ends_when_ten_losses_are_steady(losses, epochs):
    client = Merging(losses)
    named("fedala", weights_lr=0.01).train(client)
    assert len(client.asked) == epochs


def test_a_client_trains_from_the_merged_model(prepared):
    """With all of W at 1/4 the readout starts at own + (received - own) / 4, the rest as received."""
    rounds = prepared("algorithm=fedala", "algorithm.weights_lr=1e-9", "share=all")
    one, case = rounds.clients[0], rounds.case
    one.train_locally(case, rounds.algorithm, 0)
    own = one.memory["last"].clone()
    one.row += 0.5  # another model is received
    one.memory.held["weights"].fill_(0.25)
    start = one.row.clone()
    readout = [slot for slot in one.model.slots if slot.name.startswith("readout.")]
    for slot in readout:
        where = slice(slot.start, slot.stop)
        start[where] = own[where] + 0.25 * (start[where] - own[where])
    one.train_locally(case, rounds.algorithm, 1)
    torch.testing.assert_close(one.row[: one.model.trained], start - 0.25 * one.model.gradient)


def test_the_first_round_merges_nothing_and_the_trained_model_is_evaluated(prepared):
    rounds = prepared("algorithm=fedala", "share=all")
    one, case = rounds.clients[0], rounds.case
    one.train_locally(case, rounds.algorithm, 0)
    assert one.memory.held["weights"].isnan().all()
    trained = one.row.clone()
    one.row.zero_()
    one.evaluate()
    assert torch.equal(one.model.parameters, trained)
