"""Compiled GCN, GAT, GraphSAGE, SGC and MPNN equal torch-geometric's, dropout on, within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.weighted_quotient import (
    attention_quotient,
    mean_quotient,
    message_quotient,
    normalised_quotient,
)
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.fast_message_passing import FastGraphNetwork
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import MODELS, Shape
from fedmpi.models.scratch import Scratch

KINDS = ("gcn", "gat", "sage", "sgc", "mpnn")
PREPARED = {
    "gcn": normalised_quotient,
    "gat": attention_quotient,
    "sage": mean_quotient,
    "sgc": normalised_quotient,
    "mpnn": message_quotient,
}


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


@pytest.fixture(params=["labelled", "cliques"])
def bonded(request):
    """Graphs whose edges have attributes: three kinds, of which one has two columns set."""
    graphs = request.getfixturevalue(request.param)
    kinds = np.random.default_rng(2).integers(3, size=graphs.topology.num_edges)
    return replace(graphs, edges=np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], np.uint8)[kinds])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_messages_read_the_attributes_of_edges(equals_reference, dropout, bonded):
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
        # Receiver's, sender's and own part of every row seen, and the sums of one row, then of four; one edge each.
        ("mpnn", ((3 + 1 + 12 + 4) * 16, 1.5 * (1 + 4)), ((3 + 1 + 12 + 4) * 16, 2.5 * (1 + 4))),
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
