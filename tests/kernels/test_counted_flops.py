"""FLOPs of compiled networks on graphs small enough to count them by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.levels import levels
from fedmpi.graphs.refinement.quotient import quotient
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import MODELS, FedStarOptions, GinOptions, Shape
from tests.kernels.conftest import STREAMS, compiled
from tests.making import clique, flat, packed


def alike(topology, width):
    """Return graphs whose nodes all have the same features."""
    features, nodes = np.ones((1, width), np.float32), np.zeros(topology.num_nodes, int)
    return GraphSet(topology, features, nodes, np.zeros(topology.num_graphs, int))


PAIRS = alike(packed(clique(2), clique(2)), 1)
TRIANGLE = alike(packed(clique(3)), 2)


def network(options, width, bonds=0):
    return fast_network(options, flat(options, width, bonds=bonds), Scratch())


def stepped(fast, graphs):
    """Return a batch whose step was taken: a GIN's counts its sizes then."""
    batch = fast.prepare(graphs)
    fast.step(batch, STREAMS)
    return batch


def test_a_step_of_gin_and_an_evaluation():
    # One triangle of twins, one feature row of width 2: one row everywhere, hidden 16, one layer, 2 classes.
    fast = network(GinOptions(hidden=16, layers=1), 2)
    forward = 2 * 2 * 16 + 2 * 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 + 2 * 16
    assert fast.evaluation_flops(levels(TRIANGLE, 1)) == forward
    backward = 2 * 2 * 16 + 2 * (2 * 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 * 16) + 2 * 16 + 2 * 16
    assert fast.step_flops(stepped(fast, TRIANGLE)) == forward + backward


def test_grouped_sage_sums_each_node_with_its_neighbours():
    flops, counts = MODELS["sage"](hidden=16, layers=2).flops(Shape(2, 2)), GraphCounts(1, 3, 6)
    for training, times in ((False, 1), (True, 2)):
        grouped, csr = (
            flops.executed(counts, training=training, kernels=kernels) for kernels in ("grouped", "csr")
        )
        assert grouped - csr == times * 2 * 3 * 16


@pytest.mark.parametrize(
    # Five weighted sums of a batch or graph (mean, square, and three backward), six plain ones of a row.
    ("norm", "evaluation", "training"),
    [("batch", 0, 10), ("graph", 4, 10), ("layer", 2, 6), ("batch+graph", 4, 20)],
)
def test_norms(cliques, norm, evaluation, training):
    plain, normed = (compiled(GinOptions(layers=2, norm=each), cliques)[1] for each in ("none", norm))
    whole, seen = quotient(cliques), normed.levels(cliques)
    assert (
        normed.step_flops(whole) - plain.step_flops(stepped(plain, cliques))
        == 2 * training * whole.num_rows * 64
    )
    rows = sum(matrix.num_rows for matrix in seen.layers)
    assert normed.evaluation_flops(seen) - plain.evaluation_flops(seen) == evaluation * rows * 64


def test_a_step_of_fedstar_and_an_evaluation():
    # One triangle of twins, one feature row of width 2, one encoding of width 2: one row everywhere,
    # hidden 16, one layer, 2 classes (padded to 16).
    graphs = replace(TRIANGLE, structure=structure_encoding(TRIANGLE.topology, 1, 1))
    fast = network(FedStarOptions(hidden=16, layers=1, walks=1, degrees=1), 2)
    inputs = 2 * 2 * 16 + 2 * (2 * 3 * 16)  # features; encoding and bias for the GCN and for the GIN
    squares = (2 + 2 + 1 + 1) * 2 * 16 * 16 + 2 * (2 * 3 * 16 * 16)  # GIN, merging, post, readout; composing
    sums = (1 + 1) * 2 * 16 + (2 + 1) * 2 * 16  # neighbours and pooling of each channel
    assert fast.evaluation_flops(fast.levels(graphs)) == inputs + squares + sums
    assert fast.step_flops(fast.prepare(graphs)) == 2 * inputs + 3 * squares + 2 * sums


@pytest.mark.parametrize(
    ("kind", "forward", "backward"),
    # Two pairs of joined nodes: two twin classes, one class in the first layer. Two layers of 16.
    [
        ("gcn", ((1 + 2) * 16, 1 + 2), ((1 + 2) * 16, 1 + 2)),
        ("sgc", (2 * 16, 1 + 2), (2 * 16, 1 + 2)),
        ("sage", (2 * (1 + 4) * 16, 2 + 8), (2 * (1 + 4) * 16, 2 + 8)),
        # States and scores of the feature row, then of four nodes; two neighbours each, a class of one row.
        ("gat", ((1 + 4) * (16 + 16), 1 + 8), ((1 + 4) * (16 + 16), 2 * (1 + 8))),
        # Receiver's, sender's and own part of every row seen, and the sums of one row, then of four; one edge each,
        # which is no product.
        ("mpnn", ((3 + 1 + 12 + 4) * 16, (1 + 4) / 2), ((3 + 1 + 12 + 4) * 16, 3 * (1 + 4) / 2)),
    ],
)
def test_a_step(kind, forward, backward):
    fast = network(MODELS[kind](hidden=16, layers=2), 1)
    batch = fast.prepare(PAIRS)
    fast.step(batch, STREAMS)
    inputs, head = 2 * 2 * 16, 3 * 2 * 2 * (16 * 16 + 16 * 16)  # two classes are padded to 16
    layers = 2 * (forward[0] + 2 * backward[0]) * 16 + 2 * (forward[1] + backward[1]) * 16
    assert fast.step_flops(batch) == inputs + layers + head + 2 * 2 * batch.num_rows * 16


@pytest.mark.parametrize(
    ("kind", "products", "sums"),
    # Without dropout all four nodes are one row in both layers; each graph pools it twice, in one entry.
    [
        ("gcn", 2 * 16, 2),
        ("sgc", 16, 2),
        ("sage", 2 * 2 * 16, 2 * 2),
        ("gat", 2 * (16 + 16), 2),
        ("mpnn", 2 * 4 * 16, 2 / 2),
    ],
)
def test_an_evaluation(kind, products, sums):
    fast = network(MODELS[kind](hidden=16, layers=2), 1)
    head = 2 * 2 * (16 * 16 + 16 * 16)
    expected = 2 * 16 + 2 * products * 16 + 2 * sums * 16 + head + 2 * 2 * 16
    assert fast.evaluation_flops(fast.levels(PAIRS)) == expected


def test_kinds_of_edges():
    graphs = alike(packed(clique(2)), 1)
    bonded = replace(graphs, edges=np.array([[1, 0], [0, 1]], np.uint8))
    counts = []
    for each, width in ((graphs, 0), (bonded, 2)):
        fast = network(MODELS["mpnn"](hidden=16, layers=1), 1, width)
        counts.append((fast.step_flops(fast.prepare(each)), fast.evaluation_flops(fast.levels(each))))
    rows = 3 * 0 + 2 * 16 * 16 + 2 * 16  # the second node's sums: one more row and one more edge
    kinds = 2 * 2 * 2 * 16  # two rows of two columns
    assert counts[1][0] - counts[0][0] == 2 * kinds + 3 * 2 * 16 * 16 + (1 + 3) * 16
    assert counts[1][1] - counts[0][1] == kinds + rows - 16 + 2 * 16
