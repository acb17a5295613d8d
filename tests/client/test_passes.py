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
from fedmpi.models.options import GinOptions, Shape
from fedmpi.models.outcome import Outcome
from tests.making import flat, generated
from tests.tasks.making import make_task


@pytest.mark.parametrize("kernels", ["compiled", "csr", "reference"])
def test_training_graphs_are_evaluated_as_held_out_ones(kernels):
    train, other, options = generated(0, 30), generated(30, 50), GinOptions()
    width = train.feature_rows.shape[1]
    flops, model = options.flops(Shape(width, 2)), flat(options, width)

    def passes(mine, held_out):
        if kernels == "compiled":
            return CompiledPasses(mine, held_out, fast_network(options, model, Scratch()), flops)
        return TorchPasses(mine, held_out, model, kernels, flops, make_task("classification", train.labels))

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
