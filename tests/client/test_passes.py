"""The loss of a model on a client's own training graphs."""

import numpy as np
import pytest

from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape
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
