"""Objectives give the same losses and gradients on the compiled encoder as on torch's."""

import numpy as np
import pytest
import torch

from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.colours import ColouredGraphs
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.options import GinEncoderOptions
from fedmpi.objectives import options as objectives
from tests.making import assert_close, clique, flat, packed
from tests.objectives.made import STREAMS, passes_of, viewed

OBJECTIVES = [
    objectives.InfoGraphOptions(),
    objectives.IntraOptions(),
    objectives.FclgOptions(),
    objectives.FclgNodesOptions(),
    objectives.FclgNodesOptions(previous="round"),
    objectives.IntraKlOptions(inter_temperature=20.0),
    objectives.IntraMseOptions(),
]
GIN = GinEncoderOptions(hidden=16, layers=3)


@pytest.fixture(scope="module")
def graphs():
    return viewed(40)


def moved(model, number):
    """Change the parameters as training would, alike for both kernels."""
    change = np.random.default_rng(number).standard_normal(model.trained).astype(np.float32)
    for slot in model.slots:
        model.parameters[slot.start : slot.stop] += 0.02 * torch.from_numpy(change[slot.start : slot.stop])


def two_epochs(options, graphs, kernels):
    """Return losses, gradients and counted work of four steps, and the vectors in evaluation."""
    ours = passes_of(options, GIN, graphs, kernels)
    model = ours.model
    last = model.parameters.clone()
    moved(model, 9)
    ours.begin_round(last if options.keeps_last_round else None)
    found = []
    for epoch in range(2):
        for number, chosen in enumerate((np.array([3, 1, 17, 4, 30, 39]), None)):
            done = ours.step(ours.batch(chosen), STREAMS)
            found.append((done.outcome.mean_loss, model.gradient.numpy().copy(), done))
            moved(model, 2 * epoch + number)
        ours.end_epoch()
    ours.end_round()
    return found, ours.evaluate(), model.parameters.numpy().copy()


@pytest.mark.parametrize("options", OBJECTIVES, ids=lambda each: each.name)
def test_losses_and_gradients_are_torchs(options, graphs):
    fast, of_fast, ended = two_epochs(options, graphs, "compiled")
    slow, of_slow, expected = two_epochs(options, graphs, "csr")
    for (loss, gradient, done), (loss_, gradient_, done_) in zip(fast, slow, strict=True):
        assert loss == pytest.approx(loss_, rel=1e-5)
        assert_close(gradient, gradient_, 1e-4)
        assert done.model_flops == done_.model_flops
    assert_close(of_fast.vectors, of_slow.vectors)
    assert of_fast.model_flops == of_slow.model_flops
    assert_close(ended, expected)


def test_flops_of_a_hand_counted_step():
    # Two graphs of two joined nodes each, one feature: one row in every layer, 16 wide, one layer.
    graphs = GraphSet(
        packed(clique(2), clique(2)), np.ones((1, 1), np.float32), np.zeros(4, int), np.zeros(2, int)
    )
    options = GinEncoderOptions(hidden=16, layers=1)
    fast = FastEncoder(options, flat(options, 1), (Scratch(), Scratch()))
    rows = ColouredGraphs(graphs, None, 1, by_node=False).take(None)
    dense, copied, pooled = 2 * 2 * 16 * 16, 2 * 16, 4 * 16
    assert fast.flops(rows, training=False) == dense + copied + 2 * pooled
    assert fast.flops(rows, training=True) == 3 * dense + copied + 3 * pooled + 10 * 16


@pytest.mark.parametrize("kernels", ["csr", "compiled"])
@pytest.mark.parametrize(
    "options", [objectives.FclgOptions(), objectives.FclgNodesOptions()], ids=lambda each: each.name
)
def test_the_third_epoch_contrasts_with_the_end_of_the_second(graphs, options, kernels):
    ours = passes_of(options, GIN, graphs, kernels)
    model = ours.model
    received = model.parameters.clone()
    ours.begin_round(None)
    for epoch in range(2):
        moved(model, epoch)
        ours.end_epoch()
    previous = model.parameters.clone()
    moved(model, 7)
    found = ours.step(ours.batch(None), STREAMS).outcome.mean_loss
    # The same copies, kept by hand: a run whose one earlier epoch ended where the second did.
    model.parameters.copy_(received)
    ours.begin_round(None)
    model.parameters.copy_(previous)
    ours.end_epoch()
    moved(model, 7)
    assert ours.step(ours.batch(None), STREAMS).outcome.mean_loss == found


@pytest.mark.parametrize("kernels", ["csr", "compiled"])
def test_frozen_copies_say_the_same_of_a_graph_alone_and_in_a_batch(graphs, kernels):
    objective = objectives.FclgOptions().make()
    ours = passes_of(objectives.FclgOptions(), GIN, graphs, kernels)
    model, network = ours.model, ours.network
    moved(model, 3)
    before = model.parameters.clone()
    with torch.no_grad():
        (whole,) = (objective.contrasted(network, part) for part in ours.batches.train_parts)
        single = passes_of(objectives.FclgOptions(), GIN, graphs.take(np.array([11])), kernels)
        (alone,) = (objective.contrasted(network, part) for part in single.batches.train_parts)
    assert torch.allclose(whole[11], alone[0], rtol=1e-4, atol=1e-5)
    assert torch.equal(model.parameters, before)  # running statistics among them
