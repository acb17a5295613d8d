"""The encoders of unsupervised objectives against torch-geometric's layers and their definitions."""

import numpy as np
import torch
from torch_geometric.nn import GCNConv, GINConv, global_add_pool

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import DiffusionOptions, diffuse, normalised
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.models.options import GinEncoderOptions, MvgrlEncoderOptions
from tests.making import flat, generated

UNREGISTERED = MvgrlEncoderOptions(hidden=8, layers=2, register_layers=False)


def everything(name):
    return True


def test_gin_encoder_is_torch_geometrics_gin_with_relu_then_batchnorm(batch):
    module = flat(GinEncoderOptions(hidden=8, layers=3), batch.x.shape[1], start=(1, 0)).module
    x, outputs = batch.x, []
    for layer in module.conv:
        mlp = torch.nn.Sequential(layer.first, torch.nn.ReLU(), layer.second)
        convolution = GINConv(torch.nn.Identity())
        convolution.nn = mlp  # set afterwards, because the constructor initialises its network anew
        x = torch.relu(convolution(x, batch.edge_index))
        x = (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt() * layer.norm.weight + layer.norm.bias
        outputs.append(x)
    found = module.encode(batch, training=True)
    assert torch.allclose(found.nodes, torch.cat(outputs, 1), rtol=1e-4, atol=1e-5)
    expected = global_add_pool(torch.cat(outputs, 1), batch.graph_of_node)
    assert torch.allclose(found.graphs, expected, rtol=1e-4, atol=1e-4)
    assert found.graphs.shape == (24, 24)


def test_on_a_weighted_view_neighbours_count_by_their_weight(batch):
    view = diffuse(batch.topology, DiffusionOptions())
    weighted = WeightedBatch.view_of(batch, view)
    matrix = torch.zeros(len(batch.x), len(batch.x))
    rows = np.repeat(np.arange(len(batch.x)), np.diff(view.topology.row_ptr))
    matrix[rows, view.topology.columns] = torch.from_numpy(view.weights)
    x = torch.randn(len(batch.x), 5, requires_grad=True)
    assert torch.allclose(weighted.sum_neighbourhood(x), matrix @ x + x, atol=1e-5)
    weighted.spread(x).square().sum().backward()
    assert torch.allclose(x.grad, 2 * matrix.T @ matrix @ x.detach(), atol=1e-4)


def test_weights_start_by_xaviers_rule_and_biases_at_zero(batch):
    layer = flat(GinEncoderOptions(hidden=200, layers=2), batch.x.shape[1], start=(1, 0)).module.conv[1]
    bound = (6 / 400) ** 0.5
    assert 0.98 * bound < layer.first.weight.abs().max() <= bound
    assert not layer.first.bias.any() and not layer.second.bias.any()


def test_training_moves_the_running_statistics_and_evaluation_uses_them(batch):
    model = flat(GinEncoderOptions(hidden=8, layers=2), batch.x.shape[1], start=(1, 0))
    before = model.parameters.clone()
    alone = model.module.encode(batch, training=False).graphs
    assert torch.equal(model.parameters, before)
    model.module.encode(batch, training=True)
    assert torch.equal(model.parameters[: model.trained], before[: model.trained])
    assert not torch.equal(model.parameters, before)
    assert not torch.equal(model.module.encode(batch, training=False).graphs, alone)


def test_the_running_statistics_leave_with_the_parameters(batch):
    model = flat(GinEncoderOptions(hidden=8, layers=2), batch.x.shape[1], start=(1, 0))
    shared = model.shared(everything)
    assert shared.size - shared.trained == 2 * 2 * 8


def test_in_evaluation_a_graphs_vector_does_not_depend_on_the_others():
    graphs = generated(0, 12)
    whole, alone = Batch.of(graphs), Batch.of(graphs.take(np.array([7])))
    module = flat(GinEncoderOptions(hidden=8, layers=2), whole.x.shape[1], start=(1, 0)).module
    module.encode(whole, training=True)
    vectors = [module.encode(each, training=False).graphs for each in (whole, alone)]
    assert torch.allclose(vectors[0][7], vectors[1][0], rtol=1e-5, atol=1e-5)


def pair_of(batch):
    views = normalised(batch.topology), diffuse(batch.topology, DiffusionOptions(keep="all"))
    return [WeightedBatch.view_of(batch, view) for view in views]


def test_mvgrls_first_encoder_is_torch_geometrics_gcn(batch):
    module = flat(MvgrlEncoderOptions(hidden=8, layers=2), batch.x.shape[1], start=(1, 0)).module
    x, sums = batch.x, []
    for layer in module.conv[0]:
        convolution = GCNConv(x.shape[1], 8)
        convolution.lin.weight, convolution.bias = layer.linear.weight, layer.shift.bias
        x = layer.activation(convolution(x, batch.edge_index))
        sums.append(global_add_pool(x, batch.graph_of_node))
    found = module.heads(module.convolve(*pair_of(batch))).adjacency
    assert torch.allclose(found.nodes, module.node_head(x), rtol=1e-4, atol=1e-5)
    assert torch.allclose(found.graphs, module.graph_head(torch.cat(sums, 1)), rtol=1e-4, atol=1e-4)


def test_mvgrl_without_registered_layers_trains_its_heads_only(batch):
    heads = 4 * (8 * 8 + 8) + (2 * (16 * 8 + 8) + 2 * (8 * 8 + 8)) + 6
    model = flat(UNREGISTERED, batch.x.shape[1], start=(1, 0))
    assert model.num_parameters == heads
    assert model.shared(everything).size == heads
    whole = flat(MvgrlEncoderOptions(hidden=8, layers=2), batch.x.shape[1], start=(1, 0))
    assert whole.num_parameters > heads and whole.shared(everything).size == whole.num_parameters


def test_layers_that_are_not_registered_are_the_same_for_everybody(batch):
    model = flat(UNREGISTERED, batch.x.shape[1], start=(1, 0))
    first, second = model.initialise(1, 3), model.initialise(1, 4)
    assert torch.equal(first[model.trained :], second[model.trained :])
    assert not torch.equal(first[: model.trained], second[: model.trained])
