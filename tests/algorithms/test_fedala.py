"""FedALA's Eq. 5 and 6: which layers merge, how the weights move, and from where a client trains."""

import numpy as np
import pytest
import torch

from fedmpi.algorithms.capabilities import Merging
from fedmpi.algorithms.fedala import FedAla, FedAlaOptions
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import FedStarOptions, GinOptions, Shape
from fedmpi.store.reader import load_run

SUITE = """
name = "fedala"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 80 } }
partition = { name = "iid", clients = 3 }
rounds = 4
batch_size = 16
participation = 0.7
share = "all"
[matrix]
algorithm = ["fedala"]
"""


def fedala(**options):
    return FedAla(FedAlaOptions(**options))


def layers(options, number):
    names = tuple(slot.name for slot in FlatModel(build(options, Shape(3, 2))).slots)
    return fedala(layers=number).merges(names)


def test_upper_layers_are_the_last_ones_without_normalisation():
    assert layers(GinOptions(), 1) == ("readout.weight", "readout.bias")
    assert layers(GinOptions(norm="batch+graph"), 2) == (
        "post.weight",
        "post.bias",
        "readout.weight",
        "readout.bias",
    )
    assert layers(FedStarOptions(), 1) == ("readout.weight", "readout.bias")
    convolutions = ("conv.0.first.weight", "conv.0.second.weight", "conv.0.second.bias")
    assert fedala().merges(convolutions) == convolutions[1:]


def merging(losses, first, weights=(1.0, 1.0)):
    """Return a client with one batch of gradient [0.5, -1] everywhere, and where its loss was asked for."""
    asked, left = [], iter(losses)

    def loss_at(candidate):
        asked.append(candidate.tolist())
        return next(left), torch.tensor([0.5, -1.0])

    own, received = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.0])
    return Merging(own, received, torch.tensor(weights), first, lambda share: [loss_at]), asked


def test_weights_move_by_their_gradient_and_stay_shares():
    """The gradient of W is [0.5, -1] * ([2, 0] - [1, 2]) = [0.5, 2], so W = [1, 0.5] - [0.25, 1] = [0.75, 0]."""
    client, asked = merging([1.0], first=False, weights=(1.0, 0.5))
    assert fedala(weights_lr=0.5).merging_weights(client).tolist() == [0.75, 0.0]
    assert asked == [[2.0, 1.0]]  # [1, 2] + [1, -2] * [1, 0.5]


@pytest.mark.parametrize(
    ("losses", "epochs"), [([1.0] * 200, 11), ([5.0] * 3 + [1.0] * 200, 13), (list(range(200)), 100)]
)
def test_the_first_training_ends_when_ten_losses_are_steady(losses, epochs):
    client, asked = merging(losses, first=True)
    fedala(weights_lr=0.01).merging_weights(client)
    assert len(asked) == epochs


def test_a_client_trains_from_the_merged_model(prepared):
    """With all of W at 1/4 the readout starts at own + (received - own) / 4, the rest as received."""
    rounds = prepared("algorithm=fedala", "algorithm.weights_lr=1e-9", "share=all")
    one, case = rounds.clients[0], rounds.case
    one.train_locally(case, rounds.algorithm, 0)
    own = one.last.clone()
    one.row += 0.5  # another model is received
    one.kept["merging weights"].fill_(0.25)
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
    assert one.kept["merging weights"].isnan().all()
    trained = one.row.clone()
    one.row.zero_()
    one.evaluate()
    assert torch.equal(one.model.parameters, trained)


def test_a_state_holds_own_model_and_weights(prepared):
    rounds = prepared("algorithm=fedala", "share=all")
    one, case = rounds.clients[0], rounds.case
    for round in range(2):
        one.train_locally(case, rounds.algorithm, round)
    kept = one.state(kept=False)
    assert len(kept) == rounds.states.layouts()[0].size
    weights = one.kept["merging weights"].clone()
    one.kept["merging weights"].fill_(0.0)
    one.last.zero_()
    one.restore(kept, kept=False)
    assert torch.equal(one.kept["merging weights"], weights) and not weights.isnan().any()
    assert np.array_equal(one.state(kept=False), kept)


def test_a_client_that_sits_out_keeps_its_score(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    assert fedmpi("run", "suite.toml", "--out", "runs").returncode == 0
    found = load_run(tmp_path / "runs" / "fedala").results
    seen = np.cumsum(found["participated"], axis=0) > 0
    idle = seen[:-1] & (found["participated"][1:] == 0)
    assert idle.any()
    assert np.array_equal(found["test_loss"][1:][idle], found["test_loss"][:-1][idle])
