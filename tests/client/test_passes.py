"""Evaluations: the loss of a model on a client's own training graphs, and when parts are prepared."""

from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.passes import Pass, Supervised
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import GinOptions, Shape
from fedmpi.models.outcome import Outcome
from tests.making import flat, generated
from tests.tasks.making import make_task


@pytest.mark.parametrize("kernels", ["compiled", "csr", "reference"])
def test_training_graphs_are_evaluated_as_held_out_ones(kernels):
    train, other, options = generated(0, 30), generated(30, 50), GinOptions()
    width = train.feature_rows.shape[1]
    flops, model = options.flops(Shape(width, 2)), flat(options, width)

    task = make_task("classification", train.labels)

    def passes(mine, held_out):
        if kernels == "compiled":
            return CompiledPasses(mine, held_out, fast_network(options, model, Scratch()), flops, task)
        return TorchPasses(mine, held_out, model, kernels, flops, task)

    found, expected = passes(train, other).evaluate_training(), passes(other, train).evaluate()
    assert np.array_equal(found.outcome.losses, expected.outcome.losses)
    assert (found.model_flops, found.executed_flops) == (expected.model_flops, expected.executed_flops)


class _Halves(Supervised):
    """Parts that are counted as they are made; a pass over one is its number."""

    def __init__(self, train, held_out):
        self.made = []
        super().__init__(train, held_out)

    def _parts(self, graphs):
        self.made.append(graphs)
        return [len(self.made)]

    def _judge(self, part):
        return Pass(Outcome(np.full(1, float(part)), np.ones(1, np.uint8)), 0, 0)


class _Late(_Halves):
    late = True


def _some(label):
    return replace(generated(0, 3), labels=np.full(3, label))


@pytest.mark.parametrize(("kind", "at_once"), [(_Halves, 1), (_Late, 0)])
def test_held_out_graphs_are_prepared_once_and_on_a_device_when_they_are_evaluated(kind, at_once):
    passes = kind(_some(0), _some(1))
    assert len(passes.made) == at_once
    assert passes.evaluate().outcome.losses == passes.evaluate().outcome.losses == [1.0]
    other = passes.with_held_out(_some(2))
    assert len(passes.made) == 1 + at_once
    assert other.evaluate().outcome.losses == [2.0]
    assert passes.held_out.labels.tolist() == [1, 1, 1]


def test_graphs_are_held_until_their_parts_are_prepared():
    train, held_out = _some(0), _some(1)
    passes = _Late(train, held_out)
    alive = [ref(train), ref(held_out)]
    del train, held_out
    assert None not in [each() for each in alive]
    passes.evaluate_training()
    passes.evaluate()
    passes.made.clear()
    assert [each() for each in alive] == [None, None]
    assert passes.train.labels.tolist() == [0, 0, 0]


@pytest.mark.parametrize("task", ["classification", "multi-task", "regression"])
def test_a_weight_counts_as_so_many_copies_of_a_graph(task):
    """Gaps of labels count nothing: the mean is over the labels that are there."""
    graphs, options = generated(0, 3), GinOptions(dropout=0.0)
    labels = {
        "classification": graphs.labels,
        "multi-task": np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 0.0]]),
    }
    labels["regression"] = labels["multi-task"] * 3 + 0.5
    graphs = replace(graphs, labels=labels[task])
    width = graphs.feature_rows.shape[1]
    flops = options.flops(Shape(width, 2))

    def gradient(train):
        model = flat(options, width)
        passes = TorchPasses(train, graphs, model, "csr", flops, make_task(task, labels[task]))
        passes.step(passes.batch(None), DropoutStreams(0, 0, 0, 0))
        return model.gradient.numpy()

    weighted = gradient(replace(graphs, weights=np.array([3, 1, 0.5], np.float32)))
    copies = gradient(graphs.take(np.array([0, 0, 0, 0, 0, 0, 1, 1, 2])))
    assert np.abs(copies).max() > 1e-3
    assert np.allclose(weighted, copies, rtol=1e-4, atol=1e-6)
    alike = gradient(replace(graphs, weights=np.ones(3, np.float32)))
    assert np.allclose(alike, gradient(graphs), rtol=1e-5, atol=1e-7)


def test_a_batch_without_weight_has_no_gradient():
    graphs, options = generated(0, 3), GinOptions(dropout=0.0)
    width = graphs.feature_rows.shape[1]
    model = flat(options, width)
    nothing = replace(graphs, weights=np.zeros(3, np.float32))
    task = make_task("classification", graphs.labels)
    passes = TorchPasses(nothing, graphs, model, "csr", options.flops(Shape(width, 2)), task)
    passes.step(passes.batch(None), DropoutStreams(0, 0, 0, 0))
    assert not model.gradient.any()
