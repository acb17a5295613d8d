"""FedVN's network by hand, on two joined nodes with features 1 and 2, two virtual nodes and states one wide."""

import numpy as np
import pytest
import torch

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import FedVnOptions
from tests.making import flat, packed


def graphs(*features):
    """Return a graph of two joined nodes for each pair of features."""
    rows = np.array(features, np.float32).reshape(-1, 1)
    topology = packed(*[(2, [(0, 1)])] * len(features))
    return Batch.of(GraphSet(topology, rows, np.arange(len(rows)), np.zeros(len(features), np.int64)))


@pytest.fixture
def by_hand():
    """Return a function that makes a network of ones, whose edge generator scores all edges 1/2."""

    def make(layers):
        model = flat(FedVnOptions(hidden=1, layers=layers, nodes=2, dropout=0.0), 1)
        with torch.no_grad():
            for name, parameter in model.module.named_parameters():
                parameter.fill_(float(name.endswith("weight") and not name.startswith("score.")))
            model.module.virtual.states.copy_(torch.tensor([[1.0], [3.0]]))
        return model.module

    return make


def test_nodes_read_their_virtual_nodes_by_their_scores(by_hand):
    """1 + (1 + 3) / 2 and 2 + (1 + 3) / 2, whose sum both nodes have after a GIN of ones."""
    assert by_hand(1).embed(graphs([1, 2]), None)[0].tolist() == pytest.approx([7, 1, 1], rel=1e-4)


def test_virtual_nodes_read_the_nodes_before_the_layer(by_hand):
    """Their states become (1 + 3/2) times 2 and (3 + 3/2) times 2, of two hidden units; then 2 (7 + 7) = 28."""
    assert by_hand(2).embed(graphs([1, 2]), None)[0, 0].item() == pytest.approx(28, rel=1e-4)


def test_graphs_of_a_batch_have_virtual_nodes_of_their_own(by_hand):
    module = by_hand(2)
    both = module.embed(graphs([1, 2], [0, 5]), None)
    torch.testing.assert_close(both[:1], module.embed(graphs([1, 2]), None))
    assert module.embed(graphs([1, 2], [0, 5]), DropoutStreams(1, 0, 0, 0)).shape == (2, 3)
    assert module.virtual.mlp[0].first_norm.running_mean.ne(0).all()


def test_the_virtual_nodes_start_alike():
    assert not flat(FedVnOptions(hidden=4, nodes=3)).module.virtual.states.any()
    assert FedVnOptions(hidden=4, nodes=3).embedding == 7
