"""RGCN against torch-geometric's layer, and DistMult by hand."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import RGCNConv

from fedmpi.datasets.networks import with_relations
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, SparseRows
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.networks import build
from fedmpi.models.options import RgcnOptions, Shape
from fedmpi.models.rgcn import RgcnConv

NODES, RELATIONS = 30, 4


@pytest.fixture
def batch():
    rng = np.random.default_rng(5)
    senders, receivers = rng.integers(NODES, size=(2, 80))
    kinds = rng.integers(RELATIONS, size=80)
    topology, relation = with_relations(senders, receivers, kinds, np.array([0, NODES]))
    rows = SparseRows(np.arange(NODES + 1), np.arange(NODES), np.ones(NODES, np.float32), NODES)
    places = rng.integers(NODES, size=(9, 2))
    labels = rng.integers(RELATIONS, size=9)
    kinds = relation.astype(np.uint8)[:, None]
    return Batch.of(GraphSet(topology, rows, np.arange(NODES), labels, kinds, places=places))


def test_a_layer_is_torch_geometrics_over_relations_in_both_directions(batch):
    torch.manual_seed(0)
    ours, theirs = RgcnConv(12, 3, RELATIONS), RGCNConv(12, 12, 2 * RELATIONS, num_blocks=3)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.root.copy_(ours.root.weight.T)
        theirs.bias.copy_(ours.root.bias)
    relation = batch.edges[:, 0].long()
    edges = torch.cat([batch.edge_index, batch.edge_index.flip(0)], dim=1)
    kinds = torch.cat([relation, relation + RELATIONS])
    x = torch.randn(NODES, 12)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    result, expected = ours(mine, batch), theirs(other, edges, kinds)
    assert torch.allclose(result, expected, rtol=1e-5, atol=1e-6)
    weights = torch.randn_like(result)
    (result * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.allclose(mine.grad, other.grad, rtol=1e-5, atol=1e-5)
    assert torch.allclose(ours.weight.grad, theirs.weight.grad, rtol=1e-5, atol=1e-5)
    assert torch.allclose(ours.root.weight.grad, theirs.root.grad.T, rtol=1e-5, atol=1e-5)


def test_each_relation_scores_a_pair_by_distmult(batch):
    module = build(RgcnOptions(hidden=8, blocks=2, layers=0), Shape(NODES, RELATIONS))
    states = module.pre.weight.T + module.pre.bias  # features are one-hot: a learned vector for each node
    head, tail = batch.places.T
    expected = torch.einsum("nk,rk,nk->nr", states[head], module.readout.weight, states[tail])
    assert torch.allclose(module(batch, None), expected, rtol=1e-5, atol=1e-6)


def test_triples_keep_their_relations():
    triples = map(np.array, ([0, 0, 0, 1], [1, 1, 1, 1], [2, 0, 2, 1]))
    topology, relation = with_relations(*triples, np.array([0, 3]))
    assert topology.row_ptr.tolist() == [0, 0, 3, 3]
    assert list(zip(topology.columns.tolist(), relation.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 1)]


def test_training_with_dropout_draws_the_same_masks(batch):
    module = build(RgcnOptions(hidden=8, blocks=2), Shape(NODES, RELATIONS))
    first, again, other = (module(batch, DropoutStreams(seed, 0, 0, 0)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
