import pytest
import torch

from fedmpi.graphs.batch import Batch
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.norms import GraphNorm
from fedmpi.models.options import GinOptions, Shape
from tests.algorithms.programs import named
from tests.making import flat, without_edges

NORMS = ["batch", "layer", "graph", "batch+graph"]


def batch_of(*sizes):
    topology = without_edges(*sizes)
    return Batch(topology, torch.zeros(topology.num_nodes, 1), torch.zeros(len(sizes), dtype=torch.int64))


def test_graph_norm_is_eq_6_by_hand():
    layer = GraphNorm(1)
    with torch.no_grad():
        layer.weight.fill_(3.0)
        layer.bias.fill_(0.5)
        layer.mean_scale.fill_(0.5)
    # First graph 1, 3: minus half of the mean 2 leaves 0, 2, whose mean square is 2.
    # Second graph 4: leaves 2, mean square 4.
    found = layer(torch.tensor([[1.0], [3.0], [4.0]]), batch_of(2, 1), True)
    expected = [0.5, 3 * 2 / (2 + 1e-5) ** 0.5 + 0.5, 3 * 2 / (4 + 1e-5) ** 0.5 + 0.5]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-6)


def test_graph_norm_of_a_single_node_or_of_equal_nodes_is_its_shift():
    layer = GraphNorm(2)
    found = layer(torch.tensor([[7.0, -1.0], [2.0, 2.0], [2.0, 2.0]]), batch_of(1, 2), True)
    assert torch.equal(found, torch.zeros(3, 2))


@pytest.mark.parametrize("norm", NORMS)
def test_everything_but_the_norms_starts_as_without_them(batch, norm):
    plain, normed = (flat(GinOptions(norm=each), batch.x.shape[1]) for each in ("none", norm))
    row = normed.initialise(5, 2)
    assert torch.equal(plain.initialise(5, 2), row[: plain.length])


def test_running_statistics_end_the_vector_and_are_not_trained(batch):
    model = flat(GinOptions(norm="batch"), batch.x.shape[1])
    row = model.initialise(3, 1)
    statistics = row[model.trained :].reshape(6, 64)
    assert torch.equal(statistics, torch.tensor([0.0, 1.0] * 3)[:, None].expand(6, 64))
    logits = model.module(batch, DropoutStreams(1, 0, 0, 0))
    logits.sum().backward()
    assert not torch.equal(model.parameters[model.trained :], row[model.trained :])
    assert not model.gradient[model.trained :].any()


def test_evaluation_normalises_by_the_running_statistics_and_leaves_them(batch):
    model = flat(GinOptions(norm="batch"), batch.x.shape[1])
    row = model.initialise(3, 1)
    first = model.module(batch, None)
    assert torch.equal(model.parameters, row)
    model.parameters[model.trained :] = 4.0
    assert not torch.equal(first, model.module(batch, None))


def test_a_batch_of_one_node_is_normalised_by_the_running_statistics():
    single = batch_of(1)
    model = flat(GinOptions(norm="batch"), single.x.shape[1])
    row = model.initialise(3, 1)
    logits = model.module(single, DropoutStreams(1, 0, 0, 0))
    assert torch.isfinite(logits).all()
    assert torch.equal(model.parameters, row)


def shared(model, algorithm, share="conv"):
    part = model.shared(lambda name: algorithm.shares(name, share))
    return part.size, part.trained


def test_what_leaves_the_client_with_normalisation(batch):
    model = flat(GinOptions(norm="batch+graph"), batch.x.shape[1])
    conv, batch_norm, statistics, graph_norm = 24_960, 3 * 2 * 64, 3 * 2 * 64, 3 * 3 * 64
    fedavg = named("fedavg")
    assert shared(model, fedavg) == (conv + batch_norm + statistics, conv + batch_norm)
    ablation = named("fedcch", pf="shared")
    assert shared(model, ablation) == (25_344 + statistics + graph_norm, 25_344 + graph_norm)
    assert shared(model, named("fedbn")) == (conv, conv)


@pytest.mark.parametrize("norm, evaluation, training", [("batch", 0, 4), ("layer", 2, 6), ("graph", 2, 4)])
def test_flops_of_the_norms_of_a_hand_counted_triangle(norm, evaluation, training):
    # 2 layers of width 4 on 3 nodes: so many sums over 24 elements.
    shape, counts = Shape(2, 2), GraphCounts(1, 3, 6)
    plain = GinOptions(hidden=4, layers=2).flops(shape)
    normed = GinOptions(hidden=4, layers=2, norm=norm).flops(shape)
    assert normed.forward(counts).sparse - plain.forward(counts).sparse == evaluation * 24
    assert normed.training(counts).sparse - plain.training(counts).sparse == training * 24
    assert normed.training(counts).dense == plain.training(counts).dense


def test_tensors_and_running_statistics_start_from_what_is_given(batch):
    model = flat(GinOptions(norm="batch"), batch.x.shape[1])
    drawn = model.initialise(3, 1)
    model.initial = {"norm.1.running_mean": torch.full((64,), 2.0), "readout.bias": torch.ones(2)}
    row = model.initialise(3, 1)
    for name, expected in model.initial.items():
        slot = model.by_name[name]
        assert torch.equal(row[slot.start : slot.stop], expected)
    assert (row != drawn).sum() == 66
