"""The models for molecules: against plain formulas over dense matrices, their counts, their random numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import elu, leaky_relu, relu
from torch.utils.flop_counter import FlopCounterMode

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import MODELS, Shape
from tests.making import flat, packed, receivers, without_edges

MOLECULES = [MODELS[f"fedgraphnn/{name}"] for name in ("gcn", "gat", "sage")]
CONVOLUTIONS = [MODELS[name] for name in ("gcn", "gat", "sage", "sgc", "mpnn")]


@pytest.fixture(scope="module")
def graphs():
    """A triangle with a tail of one, and a path of three; bonds of two kinds."""
    topology = packed((4, [(0, 1), (0, 2), (1, 2), (2, 3)]), (3, [(0, 1), (1, 2)]))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 5)).astype(np.float32)
    bonds = np.eye(2, dtype=np.uint8)[rng.integers(0, 2, 12)]
    return GraphSet(topology, rows, np.arange(7), rng.integers(0, 2, (2, 3)).astype(float), bonds)


def adjacency(graphs):
    """A + I as a dense matrix."""
    topology = graphs.topology
    matrix = torch.eye(topology.num_nodes)
    matrix[receivers(topology), topology.columns] = 1
    return matrix


def read_out(module, x, nodes):
    hidden = relu(module.second(relu(module.first(torch.cat([x, nodes], 1)))))
    logits = module.last(hidden)
    return torch.stack([logits[:4].mean(0), logits[4:].mean(0)])


@pytest.mark.parametrize("kind", [*MOLECULES, *CONVOLUTIONS])
def test_a_client_without_held_out_graphs_has_no_outputs(graphs, kind):
    model = flat(kind(), 5, 3, 2)
    nothing = Batch.of(graphs.take(np.zeros(0, np.int64)))
    assert model.module(nothing, None).shape == (0, 3)


def test_gcn_is_two_products_without_bias_or_relu(graphs):
    module, batch = flat(MODELS["fedgraphnn/gcn"](hidden=6, node=4), 5, 3, 2).module, Batch.of(graphs)
    closed = adjacency(graphs)
    roots = closed.sum(1).rsqrt()
    normal = roots[:, None] * closed * roots
    first, second = (layer.weight for layer in module.conv)
    expected = read_out(module, batch.x, normal @ (normal @ batch.x @ first) @ second)
    torch.testing.assert_close(module(batch, None), expected)


def test_gat_is_softmax_over_neighbours_and_the_node_itself(graphs):
    module, batch = flat(MODELS["fedgraphnn/gat"](hidden=6, node=4), 5, 3, 2).module, Batch.of(graphs)
    closed, x = adjacency(graphs), batch.x
    for layer in module.conv:
        heads = []
        states = x @ layer.project.weight
        for head, part in enumerate(states.split(layer.width, 1)):
            pairs = torch.cat([part[:, None].expand(7, 7, -1), part[None].expand(7, 7, -1)], 2)
            a = torch.cat([layer.attend["receiver"][head], layer.attend["sender"][head]])
            scores = leaky_relu(pairs @ a, 0.2).masked_fill(closed == 0, -torch.inf)
            heads.append(scores.softmax(1) @ part)
        x = elu(torch.cat(heads, 1))
    torch.testing.assert_close(module(batch, None), read_out(module, batch.x, x))


def test_sage_averages_two_drawn_neighbours(graphs):
    """On two nodes that only have themselves every draw is known."""
    lonely = GraphSet(without_edges(1, 1), graphs.feature_rows[:2], np.arange(2), graphs.labels)
    module, batch = flat(MODELS["fedgraphnn/sage"](hidden=6, node=4), 5, 3, 2).module, Batch.of(lonely)
    x = relu(torch.cat([batch.x, batch.x], 1) @ module.conv[0].weight)
    x = relu(torch.cat([x, x], 1) @ module.conv[1].weight)
    hidden = relu(module.second(relu(module.first(torch.cat([batch.x, x], 1)))))
    torch.testing.assert_close(module(batch, None), module.last(hidden))


def test_sage_draws_from_closed_neighbourhoods_anew_in_each_step(graphs):
    from fedmpi.models.fedgraphnn import _drawn

    batch = Batch.of(graphs)
    nodes = np.repeat(np.arange(7), 300)
    drawn = _drawn(batch, nodes, DropoutStreams(0, 0, 0, 0), 1)
    seen = [set(drawn[np.repeat(nodes, 2) == node].tolist()) for node in range(7)]
    assert seen == [{0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3}, {2, 3}, {4, 5}, {4, 5, 6}, {5, 6}]
    module = flat(MODELS["fedgraphnn/sage"](dropout=0.0), 5, 3, 2).module
    steps = [module(batch, DropoutStreams(0, 0, 0, step)) for step in (0, 0, 1)]
    assert torch.equal(steps[0], steps[1])
    assert not torch.equal(steps[0], steps[2])
    assert torch.equal(module(batch, None), module(batch, None))


@pytest.mark.parametrize("kind", [*MOLECULES, *CONVOLUTIONS])
def test_a_batch_is_its_graphs_side_by_side(graphs, kind):
    if kind is MOLECULES[2]:
        pytest.skip("what is drawn depends on the place in the batch")
    module = flat(kind(hidden=6), 5, 3, 2).module
    together = module(Batch.of(graphs), None)
    alone = [module(Batch.of(graphs.take(np.array([g]))), None) for g in range(2)]
    torch.testing.assert_close(together, torch.cat(alone))


@pytest.mark.parametrize("kind", [*MOLECULES, *CONVOLUTIONS, MODELS["gin"]])
def test_nothing_reads_torchs_generator(graphs, kind):
    model, batch = flat(kind(hidden=6), 5, 3, 2), Batch.of(graphs)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = model.module(batch, DropoutStreams(0, 1, 2, 3))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(model.initialise(3, 1), model.parameters)
    assert torch.equal(model.module(batch, DropoutStreams(0, 1, 2, 3)), first)
    assert not torch.equal(model.module(batch, DropoutStreams(0, 1, 2, 4)), first)


def counted_by_torch(model, batch, kernels=()):
    """Return what torch counts forward, by torch-geometric where it is among these kernels, and backward."""
    with FlopCounterMode(display=False) as forward:
        outputs = model.module(batch, None, "reference" if "reference" in kernels else "csr")
    with FlopCounterMode(display=False) as backward:
        outputs.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("kind", [*MOLECULES, *CONVOLUTIONS])
def test_dense_flops_are_what_torch_counts(graphs, kind):
    options = kind(hidden=6)
    model, batch = flat(options, 5, 3, 2), Batch.of(graphs)
    flops, counts = options.flops(Shape(5, 3, 2)), GraphCounts(2, 7, 12)
    forward, backward = counted_by_torch(model, batch, options.kernels)
    # torch counts a product with a sparse matrix as one with a dense one: pooling, and GCN's propagation
    pooling = 2 * 2 * 7 * (options.graph if kind in MOLECULES else 6)
    of_features, of_states = (2 * 7 * 7 * width if kind is MOLECULES[0] else 0 for width in (5, 64))
    dense = forward - pooling - of_features - of_states
    assert dense == flops.forward(counts).dense
    assert dense + backward - of_states == flops.training(counts).dense


def test_executed_flops_of_mpnn_by_rows_are_what_torch_counts(graphs):
    options = MODELS["mpnn"](hidden=6)
    model, batch = flat(options, 5, 3, 2), Batch.of(graphs)
    flops, counts = options.flops(Shape(5, 3, 2)), GraphCounts(2, 7, 12)
    forward, backward = counted_by_torch(model, batch)
    dense = forward - 2 * 2 * 7 * 6  # the pooling
    executed = flops.executed(counts, training=False, kernels="csr")
    assert executed == dense + flops.forward(counts).sparse
    executed = flops.executed(counts, training=True, kernels="csr")
    assert executed == dense + backward + flops.training(counts).sparse


@pytest.mark.parametrize("kind", [kind for kind in CONVOLUTIONS if kind is not MODELS["gat"]])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("bonds", [False, True])
def test_sums_by_rows_equal_torch_geometrics_layers(graphs, kind, directed, bonds):
    if directed:  # without the edges 1 -> 0 and 5 -> 4, so that node 4 has no neighbour
        row_ptr, columns = np.array([0, 1, 3, 6, 7, 7, 9, 10]), np.array([2, 0, 2, 0, 1, 3, 2, 4, 6, 5])
        topology = Topology(graphs.topology.graph_ptr, row_ptr, columns)
        graphs = GraphSet(topology, graphs.feature_rows, graphs.node_row, graphs.labels, graphs.edges[:10])
    graphs = graphs if bonds else replace(graphs, edges=None)
    found = []
    for kernels in ("csr", "reference"):
        model = flat(kind(dropout=0.3), 5, 3, bonds=2 if bonds else 0)
        outputs = model.module(Batch.of(graphs), DropoutStreams(0, 1, 2, 3), kernels)
        (outputs**2).sum().backward()
        found.append((outputs.detach(), model.gradient.clone()))
    (by_rows, gradient), (along_edges, expected) = found
    assert float(expected.abs().max()) > 0
    torch.testing.assert_close(by_rows, along_edges, rtol=1e-5, atol=1e-6)
    assert float((gradient - expected).norm() / expected.norm()) < 1e-5


def test_mpnn_step_is_equation_1(graphs):
    convolution, batch = flat(MODELS["mpnn"](hidden=6), 5, 3, 2).module.conv[0], Batch.of(graphs)
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(0))
    sender, receiver = batch.edge_index
    summed = torch.zeros(7, 6)
    for edge in range(12):
        i, j = receiver[edge], sender[edge]
        summed[i] += relu(convolution.messages(torch.cat([x[i], x[j], batch.edges[edge]])))
    expected = convolution.updates(torch.cat([x, summed], 1))
    torch.testing.assert_close(convolution(x, batch.edge_index, batch.edges), expected)


def test_convolutions_have_one_shape_whatever_the_features():
    for kind in CONVOLUTIONS:
        models = [flat(kind(), width, bonds=2) for width in (3, 40)]
        slots = ([slot for slot in model.slots if "conv." in slot.name] for model in models)
        shapes = [[(slot.name, slot.shape) for slot in each] for each in slots]
        assert shapes[0] == shapes[1]
