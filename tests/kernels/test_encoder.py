"""The compiled encoder equals its definition: vectors, gradients, statistics."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import batch_norm

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import DiffusionOptions, diffuse
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.graphs.refinement.colours import ColouredGraphs
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.options import GinEncoderOptions
from tests.making import assert_close, flat, receivers


def with_lonely_graphs(graphs):
    """Return the graphs with one of a single node and one of five nodes without edges among them."""
    topology, nodes = graphs.topology, graphs.topology.num_nodes
    middle = int(topology.graph_ptr[4])
    degrees = np.insert(np.diff(topology.row_ptr), [middle] * 6, 0)
    columns = topology.columns + 6 * (topology.columns >= middle)
    sizes = np.insert(np.diff(topology.graph_ptr), [4, 4], [1, 5])
    rows = np.insert(graphs.node_row, [middle] * 6, graphs.node_row[:6])
    grown = Topology(pointers(sizes), pointers(degrees), columns)
    assert grown.num_nodes == nodes + 6
    return GraphSet(grown, graphs.feature_rows, rows, np.zeros(len(sizes), int))


@pytest.fixture(scope="module")
def kinds(labelled):
    labelled = with_lonely_graphs(labelled)
    nodes = labelled.topology.num_nodes
    rows = np.random.default_rng(3).standard_normal((nodes, 5)).astype(np.float32)
    attributed = replace(labelled, feature_rows=rows, node_row=np.arange(nodes))
    return {"labelled": labelled, "attributed": attributed}


def upstream(shape, number):
    return torch.from_numpy(np.random.default_rng(number).standard_normal(shape).astype(np.float32))


def objective(nodes, graphs, counts, with_nodes):
    """Return a loss that reads graphs and, squared, nodes: as often as each stands for."""
    loss = (graphs * upstream(graphs.shape, 0)).sum()
    if with_nodes:
        loss = loss + (counts[:, None] * nodes * nodes * upstream((1, nodes.shape[1]), 1)).sum()
    return loss


class InDouble:
    """The encoder's definition in double precision, by dense products, with vectors and gradients."""

    def __init__(self, model, graphs, view, with_nodes):
        topology = graphs.topology if view is None else view.topology
        matrix = torch.eye(topology.num_nodes, dtype=torch.float64)
        matrix[receivers(topology), topology.columns] += (
            1.0 if view is None else torch.from_numpy(view.weights).double()
        )
        owner = np.repeat(np.arange(graphs.num_graphs), np.diff(graphs.topology.graph_ptr))
        module = copy.deepcopy(model.module).double()
        x, outputs = torch.from_numpy(graphs.features).double(), []
        for layer in module.conv:
            x = torch.relu(layer.second(torch.relu(layer.first(matrix @ x))))
            norm = layer.norm
            running = norm.running_mean, norm.running_var
            x = batch_norm(x, *running, norm.weight, norm.bias, True, 0.1, norm.eps)
            outputs.append(x)
        nodes = torch.cat(outputs, 1)
        pooled = torch.zeros(graphs.num_graphs, nodes.shape[1], dtype=torch.float64)
        pooled = pooled.index_add(0, torch.from_numpy(owner), nodes)
        objective(nodes, pooled, torch.ones(len(nodes)), with_nodes).backward()
        self.nodes, self.graphs = nodes.detach().numpy(), pooled.detach().numpy()
        self.gradients = {name: each.grad.numpy() for name, each in module.named_parameters()}
        self.statistics = {name: each.numpy() for name, each in module.named_buffers()}


def compiled(model, rows, with_nodes):
    """Return vectors of nodes and graphs by the compiled kernels, and leave the gradient in the model."""
    fast = FastEncoder(GinEncoderOptions(**OPTIONS[len(model.module.conv)]), model, (Scratch(), Scratch()))
    model.gradient.zero_()
    found = fast.encode(rows, training=True)
    objective(found.nodes, found.graphs, found.counts, with_nodes).backward()
    return found.nodes.detach().numpy()[rows.node_classes.class_of_node], found.graphs.detach().numpy()


OPTIONS = {
    3: {}, 2: {"hidden": 20, "layers": 2}, 1: {"hidden": 3, "layers": 1}, 4: {"hidden": 64, "layers": 4},
}  # fmt: skip


@pytest.fixture(params=["labelled", "attributed"])
def graphs(kinds, request):
    return kinds[request.param]


@pytest.fixture(params=[False, True], ids=["plain", "diffused"])
def view(graphs, request):
    return diffuse(graphs.topology, DiffusionOptions()) if request.param else None


@pytest.mark.parametrize("layers", OPTIONS)
@pytest.mark.parametrize("with_nodes", [False, True])
def test_equals_its_definition_in_double_precision(graphs, view, with_nodes, layers):
    model = flat(GinEncoderOptions(**OPTIONS[layers]), graphs.feature_rows.shape[1], start=(1, 0))
    expected = InDouble(model, graphs, view, with_nodes)
    rows = ColouredGraphs(graphs, view, layers, by_node=True).take(None)
    nodes, pooled = compiled(model, rows, with_nodes)
    assert_close(nodes, expected.nodes)
    assert_close(pooled, expected.graphs)
    largest = max(np.abs(each).max() for each in expected.gradients.values())
    for slot in model.slots:
        found = model.gradient.numpy()[slot.start : slot.stop].reshape(slot.shape)
        assert_close(found, expected.gradients[slot.name], scale=largest)
    for slot in model.statistics:
        found = model.parameters.numpy()[slot.start : slot.stop].reshape(slot.shape)
        assert_close(found, expected.statistics[slot.name])


def test_in_evaluation_it_uses_the_running_statistics(graphs, view):
    model = flat(GinEncoderOptions(), graphs.feature_rows.shape[1], start=(1, 0))
    batch = Batch.of(graphs)
    batch = batch if view is None else WeightedBatch.view_of(batch, view)
    model.module.encode(batch, training=True)
    with torch.no_grad():
        expected = model.module.encode(batch, training=False)
    before = model.parameters.clone()
    rows = ColouredGraphs(graphs, view, 3, by_node=True).take(None)
    found = FastEncoder(GinEncoderOptions(), model, (Scratch(), Scratch())).encode(rows, training=False)
    assert_close(found.nodes.numpy()[rows.node_classes.class_of_node], expected.nodes.numpy())
    assert_close(found.graphs.numpy(), expected.graphs.numpy())
    assert torch.equal(model.parameters, before)


def test_a_batch_taken_from_more_graphs_is_the_same_as_alone(graphs, view):
    chosen = np.array([7, 4, 30, 5, 0])
    alone = None if view is None else view.take(chosen)
    found = []
    taken = ColouredGraphs(graphs, view, 3, by_node=True).take(chosen)
    for rows in (taken, ColouredGraphs(graphs.take(chosen), alone, 3, by_node=True).take(None)):
        model = flat(GinEncoderOptions(), graphs.feature_rows.shape[1], start=(1, 0))
        found.append((*compiled(model, rows, True), model.gradient.numpy().copy()))
    for first, second in zip(*found, strict=True):
        assert_close(first, second)


def test_two_views_before_one_backward_pass(kinds):
    graphs = kinds["labelled"]
    view = diffuse(graphs.topology, DiffusionOptions())
    model = flat(GinEncoderOptions(hidden=20), graphs.feature_rows.shape[1], start=(1, 0))
    fast = FastEncoder(GinEncoderOptions(hidden=20), model, (Scratch(), Scratch()))
    views = [ColouredGraphs(graphs, each, 3, by_node=False).take(None) for each in (None, view)]

    def gradient(*chosen):
        model.gradient.zero_()
        sum(fast.encode(each, training=True).graphs.square().sum() for each in chosen).backward()
        return model.gradient.numpy().copy()

    assert_close(gradient(*views), gradient(views[0]) + gradient(views[1]))


def test_clients_of_other_sizes_leave_no_trace_in_the_scratch(kinds):
    scratch, found = (Scratch(), Scratch()), []
    for kind, hidden in (("labelled", 20), ("attributed", 32), ("labelled", 20)):
        graphs, options = kinds[kind], GinEncoderOptions(hidden=hidden)
        model = flat(options, graphs.feature_rows.shape[1], start=(1, 0))
        rows = ColouredGraphs(graphs, None, 3, by_node=False).take(None)
        vectors = FastEncoder(options, model, scratch).encode(rows, training=True).graphs
        vectors.square().sum().backward()
        found.append((vectors.detach().numpy(), model.gradient.numpy().copy()))
    assert all(map(np.array_equal, found[0], found[2]))
