"""FLOPs of networks without a formula, against counts by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models.counted import count, count_model
from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.networks import build
from fedmpi.models.options import MODELS, Shape

TRIANGLE = Topology(np.array([0, 3]), np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1]))


@pytest.fixture
def triangles():
    """Two triangles: 6 nodes, 12 directed edges, 3 features."""
    features = np.arange(9, dtype=np.float32).reshape(3, 3)
    return GraphSet(TRIANGLE, features, np.arange(3), np.zeros(1, np.int64)).take(np.array([0, 0]))


class Little(nn.Module):
    """A Linear 3 -> 4 on nodes, a sum over closed neighbourhoods, a sum over graphs, a Linear 4 -> 2."""

    def __init__(self):
        super().__init__()
        self.pre, self.readout = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, batch, streams, kernels="csr"):
        return self.readout(batch.sum_graphs(batch.sum_neighbourhood(self.pre(batch.x))))


def test_a_batch_counted_by_hand(triangles):
    flops, sizes = count_model(Little(), triangles), GraphCounts(2, 6, 12)
    dense = 2 * 6 * 3 * 4 + 2 * 2 * 4 * 2
    sums = (12 + 6) * 4 + 6 * 4  # entries of A + I, and nodes summed into graphs
    assert flops.forward(sizes) == Flops(dense, sums)
    # Backward: each weight once more, and the readout's input; the features need no gradient.
    assert flops.training(sizes) == Flops(dense + 2 * 6 * 3 * 4 + 2 * (2 * 2 * 4 * 2), sums + 18 * 4)


def test_other_batches_are_in_proportion(triangles):
    flops = count_model(Little(), triangles)
    assert flops.forward(GraphCounts(6, 18, 36)) == Flops(3 * 176, 3 * 96)
    assert flops.executed(GraphCounts(2, 6, 12), training=False, kernels="csr") == 176 + 2 * 96
    assert flops.executed(GraphCounts(2, 6, 12), training=False, kernels="reference") == 176 + 96


@pytest.mark.parametrize("name", ["gin", "gcn", "fedgraphnn/gcn"])
def test_dense_products_are_those_of_the_formula(triangles, name):
    options = MODELS[name](hidden=8)
    shape, sizes = Shape(3, 2), GraphCounts(2, 6, 12)
    counted, formula = count_model(build(options, shape), triangles), options.flops(shape)
    assert counted.forward(sizes).dense == formula.forward(sizes).dense
    assert counted.training(sizes).dense == formula.training(sizes).dense


def test_sums_by_index_count_what_they_take():
    rows, index = torch.ones(5, 3), torch.tensor([0, 0, 1, 1, 1])
    assert count(lambda: torch.zeros(2, 3).index_add(0, index, rows)) == Flops(0, 15)
    assert count(lambda: torch.zeros(2, 3).scatter_add_(0, index[:, None].expand(5, 3), rows)) == Flops(0, 15)
    assert count(lambda: torch.segment_reduce(rows, "sum", lengths=torch.tensor([2, 3]))) == Flops(0, 15)
