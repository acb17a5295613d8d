"""GIN of several clients at once equals torch-geometric's of each, dropout on, within 1e-5."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.kernels.grouped_gin import GroupedGin, group_batch, losses
from fedmpi.models.dropout import DropoutStreams, device_keep_bits
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape
from fedmpi.seeds import Purpose, keep_bits, key


@pytest.mark.parametrize("dropout", [0.0, 0.3, 0.5])
def test_equals_each_client_by_torch_geometric(dropout):
    raw, options = generate(SyntheticOptions(graphs=40), 1), GinOptions(dropout=dropout)
    parts = [build_features(raw, np.arange(*span), "original") for span in ((0, 20), (20, 22), (25, 40))]
    model = FlatModel(build(options, Shape(parts[0].feature_rows.shape[1], 2)))
    rows = torch.stack([model.initialise(4, client) for client in range(3)])
    leaf = rows.clone().requires_grad_()
    streams = [DropoutStreams(1, client, 3, 0) for client in range(3)]
    batch = group_batch(parts, torch.device("cpu"))
    keys = torch.tensor([each.keys(options.layers + 1) for each in streams])
    gin = GroupedGin(options, model.slots, model.length)
    nats = losses(gin.logits(leaf, batch, keys), batch)
    (nats * batch.weights).sum().backward()
    for client, part in enumerate(parts):
        model.parameters.copy_(rows[client])
        model.gradient.zero_()
        alone = Batch.of(part)
        loss = cross_entropy(model.module(alone, streams[client], "reference"), alone.labels)
        loss.backward()
        assert nats[client, : part.num_graphs].mean().item() == pytest.approx(loss.item(), rel=1e-5)
        scale = model.gradient.abs().max()
        assert (leaf.grad[client] - model.gradient).abs().max() <= 1e-5 * scale


def test_a_client_that_sits_out_gets_no_gradient():
    raw = generate(SyntheticOptions(graphs=10), 0)
    part = build_features(raw, np.arange(10), "original")
    model = FlatModel(build(GinOptions(), Shape(part.feature_rows.shape[1], 2)))
    leaf = torch.stack([model.initialise(4, client) for client in range(2)]).requires_grad_()
    batch = group_batch([None, part], torch.device("cpu"))
    gin = GroupedGin(GinOptions(), model.slots, model.length)
    (
        losses(gin.logits(leaf, batch, torch.zeros(2, 4, dtype=torch.int64)), batch) * batch.weights
    ).sum().backward()
    assert not leaf.grad[0].any()
    assert leaf.grad[1].any()


def test_graphs_without_nodes():
    empty = Topology(np.zeros(3, int), np.zeros(1, int), np.zeros(0, int))
    part = GraphSet(empty, np.zeros((0, 3), np.float32), np.zeros(0, int), np.array([0, 1]))
    model = FlatModel(build(GinOptions(), Shape(3, 2)))
    gin = GroupedGin(GinOptions(), model.slots, model.length)
    row = model.initialise(4, 0)
    logits = gin.logits(row[None], group_batch([part], torch.device("cpu")), None)
    model.parameters.copy_(row)
    expected = model.module(Batch.of(part), None).detach()
    assert torch.allclose(logits[0], expected)


@pytest.mark.parametrize("drop", [0.25, 0.3, 0.5])
def test_masks_are_those_of_the_seeds(drop):
    names = [key(7, Purpose.DROPOUT, client) for client in range(3)]
    signed = torch.tensor([name - 2**64 if name >= 2**63 else name for name in names])
    expected = [keep_bits(name, 1003, drop).astype(bool) for name in names]
    assert np.array_equal(device_keep_bits(signed, 1003, drop).numpy(), expected)
