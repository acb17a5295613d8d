import numpy as np
import pytest
import torch

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.algorithms.fedavg import FedAvg
from fedmpi.algorithms.fedbn import FedBN
from fedmpi.algorithms.fedcch import FedCch, FedCchOptions
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import Topology
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.norms import GraphNorm
from fedmpi.models.options import GinOptions, Shape
from tests.models.conftest import graphs_of, step

NORMS = ["batch", "layer", "graph", "batch+graph"]


def flat(batch, norm, hidden=64):
    return FlatModel(build(GinOptions(norm=norm, hidden=hidden), Shape(batch.x.shape[1], 2)))


def batch_of(*sizes):
    """A batch of graphs without edges."""
    nodes = np.concatenate([[0], np.cumsum(sizes)])
    topology = Topology(nodes, np.zeros(nodes[-1] + 1, np.int64), np.zeros(0, np.int64))
    return Batch(topology, torch.zeros(int(nodes[-1]), 1), torch.zeros(len(sizes), dtype=torch.int64))


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
def test_csr_kernels_equal_torch_geometric_in_values_gradients_and_statistics(norm):
    # Few activations: one that is rounded to the other side of ReLU's kink moves the gradient by far more.
    batch = Batch.of(graphs_of(24).take(np.arange(6)))
    found = []
    for kernels in ("csr", "reference"):
        model = flat(batch, norm, hidden=16)
        model.initialise(3, 1)
        logits = step(model, batch, DropoutStreams(1, 0, 0, 0), kernels)
        with torch.no_grad():
            evaluated = model.module(batch, None, kernels)
        found.append((logits, model.gradient, model.parameters, evaluated))
    for ours, reference in zip(*found, strict=True):
        assert (ours - reference).abs().max() <= 1e-5 * reference.abs().max()


@pytest.mark.parametrize("norm", NORMS)
def test_everything_but_the_norms_starts_as_without_them(batch, norm):
    plain, normed = flat(batch, "none"), flat(batch, norm)
    row = normed.initialise(5, 2)
    assert torch.equal(plain.initialise(5, 2), row[: plain.length])


def test_running_statistics_end_the_vector_and_are_not_trained(batch):
    model = flat(batch, "batch")
    row = model.initialise(3, 1)
    statistics = row[model.trained :].reshape(6, 64)
    assert torch.equal(statistics, torch.tensor([0.0, 1.0] * 3)[:, None].expand(6, 64))
    logits = model.module(batch, DropoutStreams(1, 0, 0, 0))
    logits.sum().backward()
    assert not torch.equal(model.parameters[model.trained :], row[model.trained :])
    assert not model.gradient[model.trained :].any()


def test_evaluation_normalises_by_the_running_statistics_and_leaves_them(batch):
    model = flat(batch, "batch")
    row = model.initialise(3, 1)
    first = model.module(batch, None)
    assert torch.equal(model.parameters, row)
    model.parameters[model.trained :] = 4.0
    assert not torch.equal(first, model.module(batch, None))


def test_a_batch_of_one_node_is_normalised_by_the_running_statistics():
    single = batch_of(1)
    model = flat(single, "batch")
    row = model.initialise(3, 1)
    logits = model.module(single, DropoutStreams(1, 0, 0, 0))
    assert torch.isfinite(logits).all()
    assert torch.equal(model.parameters, row)


def shared(model, algorithm, share="conv"):
    part = model.shared(lambda name: algorithm.shares(name, share))
    return part.size, part.trained


def test_what_leaves_the_client_with_normalisation(batch):
    model = flat(batch, "batch+graph")
    conv, batch_norm, statistics, graph_norm = 24_960, 3 * 2 * 64, 3 * 2 * 64, 3 * 3 * 64
    fedavg = FedAvg(AlgorithmOptions(name="fedavg"))
    assert shared(model, fedavg) == (conv + batch_norm + statistics, conv + batch_norm)
    ablation = FedCch(FedCchOptions(pf="shared"))
    assert shared(model, ablation) == (25_344 + statistics + graph_norm, 25_344 + graph_norm)
    assert shared(model, FedBN(AlgorithmOptions(name="fedbn"))) == (conv, conv)


def test_fedbn_with_everything_else_shared_keeps_the_norms(batch):
    plain, normed = flat(batch, "none"), flat(batch, "batch")
    fedbn = FedBN(AlgorithmOptions(name="fedbn"))
    assert shared(normed, fedbn, "all") == (plain.num_parameters,) * 2


@pytest.mark.parametrize(
    ("norm", "evaluation", "training"), [("batch", 0, 4), ("layer", 2, 6), ("graph", 2, 4)]
)
def test_flops_of_the_norms_of_a_hand_counted_triangle(norm, evaluation, training):
    # 2 layers of width 4 on 3 nodes: so many sums over 24 elements.
    shape, counts = Shape(2, 2), GraphCounts(1, 3, 6)
    plain = GinOptions(hidden=4, layers=2).flops(shape)
    normed = GinOptions(hidden=4, layers=2, norm=norm).flops(shape)
    assert normed.forward(counts).sparse - plain.forward(counts).sparse == evaluation * 24
    assert normed.training(counts).sparse - plain.training(counts).sparse == training * 24
    assert normed.training(counts).dense == plain.training(counts).dense
