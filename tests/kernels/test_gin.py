"""The compiled GIN equals torch-geometric's, dropout on, within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.graphs.refinement.levels import levels
from fedmpi.graphs.refinement.quotient import quotient
from fedmpi.kernels.graph_network import FastGraphNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape

NORMALISED = {"labelled": 1e-5, "attributed": 1e-5, "cliques": 1e-3}
"""Nodes of a clique are nearly equal, and what normalisation makes of the rest is mostly rounding: there torch's
own passes are up to 5e-4 from double precision, the compiled ones 8e-5."""

STREAMS = DropoutStreams(seed=1, client=2, round=3, step=0)


@pytest.fixture(scope="module")
def check(equals_reference):
    def run(graphs, batch=None, tolerance=1e-5, **options):
        equals_reference(GinOptions(**options), graphs, batch, tolerance)

    return run


@pytest.mark.parametrize("dropout", [0.0, 0.25, 0.3, 0.5])
@pytest.mark.parametrize("kind", ["labelled", "cliques", "attributed"])
def test_equals_torch_geometric(check, kind, dropout, request):
    check(request.getfixturevalue(kind), dropout=dropout)


@pytest.mark.parametrize(
    "options", [{"hidden": 20}, {"hidden": 128}, {"hidden": 1}, {"layers": 1}, {"layers": 5}]
)
def test_any_width_and_depth(check, options, cliques):
    check(cliques, **options)


@pytest.mark.parametrize("norm", ["batch", "graph", "layer", "batch+graph"])
@pytest.mark.parametrize("hidden", [64, 20])
@pytest.mark.parametrize("kind", ["labelled", "cliques", "attributed"])
def test_normalised_rows(check, kind, hidden, norm, request):
    check(request.getfixturevalue(kind), tolerance=NORMALISED[kind], hidden=hidden, norm=norm)


@pytest.mark.parametrize("norm", ["batch", "graph", "layer", "batch+graph"])
@pytest.mark.parametrize("kind", ["labelled", "cliques"])
def test_a_normalised_batch_taken_from_more_graphs(check, kind, norm, request):
    graphs = request.getfixturevalue(kind)
    chosen = np.array([7, 2, 9, 9, 0])
    check(graphs.take(chosen), quotient(graphs).take(chosen), tolerance=NORMALISED[kind], norm=norm)


@pytest.mark.parametrize("norm", ["batch", "graph", "layer", "batch+graph"])
def test_embeddings_are_those_of_torch_geometric(norm, labelled):
    model = FlatModel(build(GinOptions(norm=norm), Shape(labelled.feature_rows.shape[1], 3)))
    model.parameters.copy_(model.initialise(seed=5, owner=1))
    fast = FastGraphNetwork(GinOptions(norm=norm), model, Scratch())
    with torch.no_grad():
        expected = model.module.embed(Batch.of(labelled), None, "reference").numpy()
    found = fast.embed(fast.levels(labelled))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["labelled", "cliques", "attributed"])
def test_a_batch_taken_from_more_graphs(check, kind, request):
    graphs = request.getfixturevalue(kind)
    chosen = np.array([7, 2, 9, 9, 0])
    check(graphs.take(chosen), quotient(graphs).take(chosen))


def test_a_class_of_more_than_255_twins(check, cliques):
    size = 300
    columns = np.concatenate([np.delete(np.arange(size), node) for node in range(size)])
    topology = Topology(np.array([0, size]), np.arange(size + 1) * (size - 1), columns)
    big = GraphSet(topology, np.ones((1, 2), np.float32), np.zeros(size, int), np.array([1]))
    assert quotient(big).largest_class == size
    check(big, layers=1)  # sums of 300 nodes cubed would cancel in the loss


def test_graphs_without_nodes_and_with_one_class(check, labelled):
    sizes = np.diff(labelled.topology.graph_ptr)[:3]
    starts = pointers([0, *sizes, 0])
    whole = labelled.take(np.arange(3))
    topology = replace(whole.topology, graph_ptr=starts)
    check(replace(whole, topology=topology, labels=np.zeros(5, int)))
    check(replace(whole, topology=topology, labels=np.array([0, 1, 0, 2, 1])))


@pytest.mark.parametrize("norm", ["none", "layer", "batch+graph"])
def test_clients_of_other_shapes_leave_no_trace_in_the_scratch(labelled, cliques, attributed, norm):
    scratch = Scratch()
    found = []
    for graphs, hidden in ((labelled, 20), (cliques, 64), (attributed, 16), (labelled, 20)):
        options = GinOptions(hidden=hidden, norm=norm)
        model = FlatModel(build(options, Shape(graphs.feature_rows.shape[1], int(graphs.labels.max()) + 1)))
        model.parameters.copy_(model.initialise(seed=5, owner=1))
        fast = FastGraphNetwork(options, model, scratch)
        fast.evaluate(fast.levels(graphs), graphs.labels)
        losses = fast.step(quotient(graphs), STREAMS).losses
        found.append((losses, model.gradient.numpy().copy()))
    assert np.array_equal(found[0][0], found[-1][0])
    assert np.array_equal(found[0][1], found[-1][1])


@pytest.mark.parametrize("norm", ["none", "batch", "graph", "layer", "batch+graph"])
def test_a_nan_in_the_first_layer_gives_a_nan_loss(labelled, norm):
    options = GinOptions(norm=norm)
    model = FlatModel(build(options, Shape(labelled.feature_rows.shape[1], 3)))
    model.parameters.copy_(model.initialise(seed=5, owner=1))
    model.parameters[model.slots[0].start] = float("nan")
    fast = FastGraphNetwork(options, model, Scratch())
    assert np.isnan(fast.logits(fast.levels(labelled))).any()
    assert np.isnan(fast.step(quotient(labelled), STREAMS).loss_sum)


def test_flops_of_a_hand_counted_step():
    # One triangle of twins, one feature row of width 2: one row everywhere, hidden 16, one layer, 2 classes.
    topology = Topology(np.array([0, 3]), np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1]))
    graphs = GraphSet(topology, np.ones((1, 2), np.float32), np.zeros(3, int), np.array([0]))
    options = GinOptions(hidden=16, layers=1)
    fast = FastGraphNetwork(options, FlatModel(build(options, Shape(2, 2))), Scratch())
    forward = 2 * 2 * 16 + 2 * 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 + 2 * 16
    assert fast.evaluation_flops(levels(graphs, 1)) == forward
    backward = 2 * 2 * 16 + 2 * (2 * 2 * 16 * 16 + 2 * 16 * 16 + 2 * 16 * 16) + 2 * 16 + 2 * 16
    assert fast.step_flops(quotient(graphs)) == forward + backward


@pytest.mark.parametrize(
    # Five weighted sums of a batch or graph (mean, square, and three backward), six plain ones of a row.
    ("norm", "evaluation", "training"),
    [("batch", 0, 10), ("graph", 4, 10), ("layer", 2, 6), ("batch+graph", 4, 20)],
)
def test_flops_of_the_norms_of_a_hand_counted_step(cliques, norm, evaluation, training):
    plain, normed = (
        FastGraphNetwork(
            options, FlatModel(build(options, Shape(cliques.feature_rows.shape[1], 3))), Scratch()
        )
        for options in (GinOptions(layers=2), GinOptions(layers=2, norm=norm))
    )
    whole, seen = quotient(cliques), normed.levels(cliques)
    assert normed.step_flops(whole) - plain.step_flops(whole) == 2 * training * whole.num_rows * 64
    rows = sum(matrix.num_rows for matrix in seen.layers)
    assert normed.evaluation_flops(seen) - plain.evaluation_flops(seen) == evaluation * rows * 64
