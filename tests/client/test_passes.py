"""Evaluations: the loss of a model on a client's own training graphs, and when parts are prepared."""

from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.passes import Pass, Supervised
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape
from fedmpi.models.outcome import Outcome
from tests.tasks.making import make_task


@pytest.mark.parametrize("kernels", ["compiled", "csr", "reference"])
def test_training_graphs_are_evaluated_as_held_out_ones(kernels):
    raw = generate(SyntheticOptions(graphs=50), 1)
    train, other = (build_features(raw, np.arange(*part), "original") for part in ((0, 30), (30, 50)))
    shape = Shape(train.feature_rows.shape[1], 2)
    options = GinOptions()
    flops = options.flops(shape)
    model = FlatModel(build(options, shape))
    model.parameters.copy_(model.initialise(5, 1))

    def passes(mine, held_out):
        if kernels == "compiled":
            return CompiledPasses(mine, held_out, fast_network(options, model, Scratch()), flops)
        return TorchPasses(mine, held_out, model, kernels, flops, make_task("classification", raw.labels))

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
    raw = generate(SyntheticOptions(graphs=10), 1)
    return replace(build_features(raw, np.arange(3), "original"), labels=np.full(3, label))


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
