"""The compiled network of FedStar equals torch-geometric's, dropout on, within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedmpi.case.optimizers import AdamOptions
from fedmpi.client.optimizer import AdamState, descend
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.graphs.refinement.channels import channel_batch
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.structure_loops import gather
from fedmpi.kernels.two_channel import FastFedStar
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import FedStarOptions, Shape

STREAMS = DropoutStreams(seed=1, client=2, round=3, step=0)
KINDS = ["labelled", "cliques", "attributed"]


def encoded(graphs, walks=16, degrees=16):
    return replace(graphs, structure=structure_encoding(graphs.topology, walks, degrees))


@pytest.fixture(scope="module")
def check(equals_reference):
    def run(graphs, batch=None, **options):
        chosen = FedStarOptions(**options)
        equals_reference(chosen, encoded(graphs, chosen.walks, chosen.degrees), batch)

    return run


def made(graphs, scratch=None, **options):
    chosen = FedStarOptions(**options)
    model = FlatModel(build(chosen, Shape(graphs.feature_rows.shape[1], int(graphs.labels.max()) + 1)))
    model.parameters.copy_(model.initialise(seed=5, owner=1))
    return model, FastFedStar(chosen, model, scratch or Scratch())


@pytest.mark.parametrize("dropout", [0.0, 0.25, 0.3, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_geometric(check, kind, dropout, request):
    check(request.getfixturevalue(kind), dropout=dropout)


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": 20},
        {"hidden": 128},
        {"hidden": 1},
        {"layers": 1},
        {"layers": 5},
        {"walks": 3, "degrees": 2},
    ],
)
def test_any_width_and_depth(check, options, cliques):
    check(cliques, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_taken_from_more_graphs(check, kind, request):
    graphs = request.getfixturevalue(kind)
    chosen = np.array([7, 2, 9, 9, 0])
    check(graphs.take(chosen), channel_batch(encoded(graphs), 3).take(chosen))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_adam_stay_with_those_of_torch_geometric(kind, request):
    graphs = encoded(request.getfixturevalue(kind))
    model, fast = made(graphs)
    plain, _ = made(graphs)
    states = AdamState(model.trained), AdamState(model.trained)
    batch, prepared = Batch.of(graphs), fast.prepare(graphs)
    for step in range(10):
        streams = DropoutStreams(seed=1, client=2, round=3, step=step)
        plain.gradient.zero_()
        expected = cross_entropy(plain.module(batch, streams, "reference"), batch.labels)
        expected.backward()
        assert fast.step(prepared, streams).mean_loss == pytest.approx(expected.item(), rel=1e-4)
        for each, state in zip((model, plain), states, strict=True):
            descend(AdamOptions(), state, each.parameters, each.gradient)


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_are_those_of_torch_geometric(kind, request):
    graphs = encoded(request.getfixturevalue(kind))
    model, fast = made(graphs)
    with torch.no_grad():
        expected = model.module.embed(Batch.of(graphs), None, "reference").numpy()
    found = fast.embed(fast.levels(graphs))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_degrees_beyond_the_encoding_are_told_apart(check):
    # Two stars, of 3 and 4 leaves: alike to an encoding of one walk and one degree, not to the GCN.
    sizes, columns = [4, 5], []
    for start, size in zip(pointers(sizes), sizes, strict=False):
        columns += [start + np.arange(1, size)] + [np.array([start])] * (size - 1)
    topology = Topology(pointers(sizes), pointers([len(line) for line in columns]), np.concatenate(columns))
    graphs = GraphSet(topology, np.ones((1, 2), np.float32), np.zeros(9, int), np.array([0, 1]))
    check(graphs, walks=1, degrees=1)
    assert channel_batch(encoded(graphs, 1, 1), 1).structure.inputs.shape == (3, 3)


def test_graphs_without_nodes_and_with_one_class(check, labelled):
    sizes = np.diff(labelled.topology.graph_ptr)[:3]
    whole = labelled.take(np.arange(3))
    topology = replace(whole.topology, graph_ptr=pointers([0, *sizes, 0]))
    check(replace(whole, topology=topology, labels=np.zeros(5, int)))
    check(replace(whole, topology=topology, labels=np.array([0, 1, 0, 2, 1])))


def test_clients_of_other_shapes_leave_no_trace_in_the_scratch(labelled, cliques, attributed):
    scratch, found = Scratch(), []
    for graphs, hidden in ((labelled, 20), (cliques, 64), (attributed, 16), (labelled, 20)):
        graphs = encoded(graphs)
        model, fast = made(graphs, scratch, hidden=hidden)
        fast.evaluate(fast.levels(graphs), graphs.labels)
        losses = fast.step(fast.prepare(graphs), STREAMS).losses
        found.append((losses, model.gradient.numpy().copy()))
    assert np.array_equal(found[0][0], found[-1][0])
    assert np.array_equal(found[0][1], found[-1][1])


def test_nan_parameters_give_a_nan_loss(labelled):
    graphs = encoded(labelled)
    model, fast = made(graphs)
    model.parameters.fill_(float("nan"))
    assert np.isnan(fast.step(fast.prepare(graphs), STREAMS).loss_sum)


def test_tanh_is_within_five_units_in_the_last_place_and_keeps_nan():
    x = np.concatenate(
        [np.linspace(-12, 12, 100_001), np.logspace(-30, 1, 4_999), [np.inf, -np.inf, np.nan, 0]]
    )
    x = np.resize(x, (6563, 16)).astype(np.float32)
    rows = np.arange(len(x) + 1, dtype=np.int32)
    ones, bias = np.ones(len(x), np.float32), np.zeros(16, np.float32)
    found, given = np.empty_like(x), np.empty_like(x)
    gather(rows, rows[:-1], ones, x, x, ones, bias, found, given)
    expected = np.tanh(x.astype(np.float64))
    off = np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert np.array_equal(np.isnan(found), np.isnan(x))
    assert np.nanmax(off) <= 5
    assert np.array_equal(given, x, equal_nan=True)


def test_flops_of_a_hand_counted_step():
    # One triangle of twins, one feature row of width 2, one encoding of width 2: one row everywhere,
    # hidden 16, one layer, 2 classes (padded to 16).
    topology = Topology(np.array([0, 3]), np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1]))
    graphs = encoded(GraphSet(topology, np.ones((1, 2), np.float32), np.zeros(3, int), np.array([0])), 1, 1)
    options = FedStarOptions(hidden=16, layers=1, walks=1, degrees=1)
    fast = FastFedStar(options, FlatModel(build(options, Shape(2, 2))), Scratch())
    inputs = 2 * 2 * 16 + 2 * (2 * 3 * 16)  # features; encoding and bias for the GCN and for the GIN
    squares = (2 + 2 + 1 + 1) * 2 * 16 * 16 + 2 * (2 * 3 * 16 * 16)  # GIN, merging, post, readout; composing
    sums = (1 + 1) * 2 * 16 + (2 + 1) * 2 * 16  # neighbours and pooling of each channel
    assert fast.evaluation_flops(fast.levels(graphs)) == inputs + squares + sums
    assert fast.step_flops(fast.prepare(graphs)) == 2 * inputs + 3 * squares + 2 * sums
