"""GIN, its norms and FedStar by rows against torch-geometric's layers, and their dense products as torch counts them."""

import pytest
import torch

from fedmpi.client.torch_passes import counts_of
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import FedStarOptions, GinOptions, Shape
from tests.making import assert_close, flat
from tests.models.conftest import batch_of, dense_flops, step

STREAMS = DropoutStreams(1, 0, 0, 0)


@pytest.mark.parametrize(
    "options",
    [
        *(GinOptions(dropout=dropout) for dropout in (0.0, 0.3, 0.5)),
        *(GinOptions(norm=norm, hidden=16) for norm in ("batch", "layer", "graph", "batch+graph")),
        FedStarOptions(),
    ],
)
def test_csr_kernels_equal_torch_geometric_in_values_gradients_and_statistics(options):
    # Few activations: one that is rounded to the other side of ReLU's kink moves the gradient by far more.
    batch, found = batch_of(6), []
    for kernels in ("csr", "reference"):
        model = flat(options, batch.x.shape[1])
        logits = step(model, batch, STREAMS, kernels)
        with torch.no_grad():
            evaluated = model.module(batch, None, kernels)
        found.append((logits, model.gradient, model.parameters, evaluated))
    for ours, reference in zip(*found, strict=True):
        assert_close(ours, reference)


@pytest.mark.parametrize("options", [GinOptions(), FedStarOptions()])
def test_dense_flops_equal_torchs_counter(options, batch):
    flops, counts = options.flops(Shape(batch.x.shape[1], 2)), counts_of(batch)
    found = dense_flops(flat(options, batch.x.shape[1]), batch, STREAMS)
    assert found == [flops.forward(counts).dense, flops.training(counts).dense]
