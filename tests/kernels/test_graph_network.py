"""Compiled GCN, GAT, GraphSAGE, SGC and MPNN equal torch-geometric's, dropout on, within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.refinement.weighted import (
    attention_quotient,
    mean_quotient,
    message_quotient,
    normalised_quotient,
)
from fedmpi.kernels.graph_network import FastGraphNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import MODELS, Shape

KINDS = ("gcn", "gat", "sage", "sgc", "mpnn")
PREPARED = {
    "gcn": normalised_quotient,
    "gat": attention_quotient,
    "sage": mean_quotient,
    "sgc": normalised_quotient,
    "mpnn": message_quotient,
}

STREAMS = DropoutStreams(seed=1, client=2, round=3, step=0)


@pytest.fixture
def directed(labelled):
    """The same graphs with a third of their edges in one direction only, so that nobody sees some nodes."""
    topology = labelled.topology
    kept = np.arange(topology.num_edges) % 3 > 0
    of_node = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))[kept]
    row_ptr = np.concatenate([[0], np.cumsum(np.bincount(of_node, minlength=topology.num_nodes))])
    columns = np.asarray(topology.columns)[kept]
    return replace(labelled, topology=Topology(topology.graph_ptr, row_ptr, columns))


@pytest.mark.parametrize("dropout", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("graphs", ["labelled", "cliques", "attributed", "directed"])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_geometric(equals_reference, kind, graphs, dropout, request):
    equals_reference(MODELS[kind](dropout=dropout), request.getfixturevalue(graphs))


@pytest.mark.parametrize(
    "options", [{"hidden": 20}, {"hidden": 128}, {"layers": 1}, {"layers": 5}, {"pooling": "sum"}]
)
@pytest.mark.parametrize("kind", KINDS)
def test_any_width_depth_and_pooling(equals_reference, kind, options, cliques):
    equals_reference(MODELS[kind](**options), cliques)


@pytest.mark.parametrize("graphs", ["labelled", "cliques", "attributed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_taken_from_more_graphs(equals_reference, kind, graphs, request):
    everything, chosen = request.getfixturevalue(graphs), np.array([7, 2, 9, 9, 0])
    equals_reference(MODELS[kind](), everything.take(chosen), PREPARED[kind](everything).take(chosen))


@pytest.mark.parametrize("kind", ["gat", "mpnn"])
def test_edges_from_a_node_to_itself_and_twice_the_same(equals_reference, kind):
    lines = [[0, 1, 1, 2], [0], [0, 2], [4], [3, 4]]
    columns = np.concatenate(lines)
    odd = Topology(np.array([0, 3, 5]), np.cumsum([0, *map(len, lines)]), columns)
    graphs = GraphSet(odd, np.eye(2, dtype=np.float32), np.array([0, 0, 1, 0, 0]), np.array([0, 1]))
    equals_reference(MODELS[kind](dropout=0.0), graphs)
    assert PREPARED[kind](graphs).sizes == (2, 5, 10)


@pytest.fixture(params=["labelled", "cliques"])
def bonded(request):
    """Graphs whose edges have attributes: three kinds, of which one has two columns set."""
    graphs = request.getfixturevalue(request.param)
    kinds = np.random.default_rng(2).integers(3, size=graphs.topology.num_edges)
    return replace(graphs, edges=np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], np.uint8)[kinds])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_messages_read_the_attributes_of_edges(equals_reference, dropout, bonded):
    # Two layers: in a third, a message 6e-8 from ReLU's kink falls on either side of it, by rounding.
    equals_reference(MODELS["mpnn"](dropout=dropout, layers=2), bonded)


def test_messages_of_a_batch_taken_from_more_graphs_with_attributes(equals_reference, bonded):
    chosen = np.array([7, 2, 9, 9, 0])
    equals_reference(MODELS["mpnn"](), bonded.take(chosen), message_quotient(bonded).take(chosen))


@pytest.mark.parametrize("heads", [1, 4, 16])
def test_any_number_of_heads(equals_reference, heads, labelled):
    equals_reference(MODELS["gat"](hidden=48, heads=heads, slope=0.1), labelled)


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_without_neighbours(equals_reference, kind):
    alone = Topology(np.array([0, 1, 3]), np.array([0, 0, 1, 2]), np.array([2, 1]))
    graphs = GraphSet(alone, np.eye(3, dtype=np.float32), np.arange(3), np.array([0, 1]))
    equals_reference(MODELS[kind](), graphs)


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
def test_flops_of_a_hand_counted_step(kind, forward, backward):
    pairs = Topology(np.array([0, 2, 4]), np.arange(5), np.array([1, 0, 3, 2]))
    graphs = GraphSet(pairs, np.ones((1, 1), np.float32), np.zeros(4, int), np.zeros(2, int))
    options = MODELS[kind](hidden=16, layers=2)
    fast = FastGraphNetwork(options, FlatModel(build(options, Shape(1, 2))), Scratch())
    batch = fast.prepare(graphs)
    fast.step(batch, DropoutStreams(0, 0, 0, 0))
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
def test_flops_of_a_hand_counted_evaluation(kind, products, sums):
    pairs = Topology(np.array([0, 2, 4]), np.arange(5), np.array([1, 0, 3, 2]))
    graphs = GraphSet(pairs, np.ones((1, 1), np.float32), np.zeros(4, int), np.zeros(2, int))
    options = MODELS[kind](hidden=16, layers=2)
    fast = FastGraphNetwork(options, FlatModel(build(options, Shape(1, 2))), Scratch())
    head = 2 * 2 * (16 * 16 + 16 * 16)
    expected = 2 * 16 + 2 * products * 16 + 2 * sums * 16 + head + 2 * 2 * 16
    assert fast.evaluation_flops(fast.levels(graphs)) == expected


def test_flops_of_kinds_of_edges():
    pair = Topology(np.array([0, 2]), np.arange(3), np.array([1, 0]))
    graphs = GraphSet(pair, np.ones((1, 1), np.float32), np.zeros(2, int), np.zeros(1, int))
    bonded = replace(graphs, edges=np.array([[1, 0], [0, 1]], np.uint8))
    counts = []
    for each, width in ((graphs, 0), (bonded, 2)):
        options = MODELS["mpnn"](hidden=16, layers=1)
        fast = FastGraphNetwork(options, FlatModel(build(options, Shape(1, 2, width))), Scratch())
        counts.append((fast.step_flops(fast.prepare(each)), fast.evaluation_flops(fast.levels(each))))
    rows = 3 * 0 + 2 * 16 * 16 + 2 * 16  # the second node's sums: one more row and one more edge
    kinds = 2 * 2 * 2 * 16  # two rows of two columns
    assert counts[1][0] - counts[0][0] == 2 * kinds + 3 * 2 * 16 * 16 + (1 + 3) * 16
    assert counts[1][1] - counts[0][1] == kinds + rows - 16 + 2 * 16


@pytest.mark.parametrize("kind", KINDS)
def test_a_nan_in_the_first_layer_gives_a_nan_loss(kind, labelled):
    options = MODELS[kind]()
    model = FlatModel(build(options, Shape(labelled.feature_rows.shape[1], 3)))
    model.parameters.copy_(model.initialise(seed=5, owner=1))
    model.parameters[model.slots[0].start] = float("nan")
    fast = FastGraphNetwork(options, model, Scratch())
    assert np.isnan(fast.logits(fast.levels(labelled))).any()
    assert np.isnan(fast.step(fast.prepare(labelled), STREAMS).loss_sum)


@pytest.mark.parametrize("kind", KINDS)
def test_clients_of_other_shapes_leave_no_trace_in_the_scratch(kind, labelled, cliques, attributed):
    scratch, found = Scratch(), []
    for graphs, hidden in ((labelled, 20), (cliques, 64), (attributed, 16), (labelled, 20)):
        options = MODELS[kind](hidden=hidden)
        model = FlatModel(build(options, Shape(graphs.feature_rows.shape[1], int(graphs.labels.max()) + 1)))
        model.parameters.copy_(model.initialise(seed=5, owner=1))
        fast = FastGraphNetwork(options, model, scratch)
        fast.evaluate(fast.levels(graphs), graphs.labels)
        losses = fast.step(fast.prepare(graphs), STREAMS).losses
        found.append((losses, model.gradient.numpy().copy()))
    assert np.array_equal(found[0][0], found[-1][0])
    assert np.array_equal(found[0][1], found[-1][1])
