import pytest
import torch

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.algorithms.fedavg import FedAvg
from fedmpi.algorithms.fedstar import FedStar, FedStarOptions
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import FedStarOptions as ModelOptions
from fedmpi.models.options import GinOptions, Shape
from tests.models.conftest import dense_flops, step


@pytest.fixture(scope="module")
def batch(batch):
    structure = torch.from_numpy(structure_encoding(batch.topology, 16, 16))
    return Batch(batch.topology, batch.x, batch.labels, None, structure)


def flat(width, classes=2):
    return FlatModel(build(ModelOptions(), Shape(width, classes)))


def test_parameters_on_mutag_are_those_of_the_released_code():
    model = flat(7)
    assert model.num_parameters == 64_898
    fedstar = FedStar(FedStarOptions())
    assert model.shared(lambda name: fedstar.shares(name, "conv")).size == 14_592


def test_the_matched_gin_has_as_many_parameters_within_a_quarter_of_a_percent():
    gin = FlatModel(build(GinOptions(hidden=95), Shape(7, 2)))
    assert gin.num_parameters == 64_792


def test_fedavg_shares_both_channels_of_convolutions():
    fedavg = FedAvg(AlgorithmOptions(name="fedavg"))
    assert flat(7).shared(lambda name: fedavg.shares(name, "conv")).size == 14_592 + 37_248


def test_without_sharing_every_client_is_alone():
    alone = FedStar(FedStarOptions(sharing=False))
    assert not alone.communicates
    assert alone.groups(3).tolist() == [0, 1, 2]
    assert FedStar(FedStarOptions()).communicates


def test_csr_kernels_equal_torch_geometric_with_dropout_on(batch):
    found = []
    for kernels in ("csr", "reference"):
        model = flat(batch.x.shape[1])
        model.initialise(3, 1)
        found.append((step(model, batch, DropoutStreams(1, 0, 0, 0), kernels), model.gradient))
    for ours, reference in zip(*found, strict=True):
        assert (ours - reference).abs().max() <= 1e-5 * reference.abs().max()


def test_the_structure_channel_does_not_read_the_features(batch):
    model = flat(batch.x.shape[1])
    model.initialise(3, 1)
    channel = model.module.structure
    s = channel.embed(batch.structure)
    for gcn in channel.conv:
        s = torch.tanh(gcn(batch, s, "csr"))
    parameters = [p for name, p in model.module.named_parameters() if not name.startswith("structure.")]
    assert all(gradient is None for gradient in torch.autograd.grad(s.sum(), parameters, allow_unused=True))


def test_dense_flops_equal_torchs_counter(batch):
    model = flat(batch.x.shape[1])
    counts = GraphCounts(batch.num_graphs, batch.topology.num_nodes, batch.topology.num_edges)
    flops = ModelOptions().flops(Shape(batch.x.shape[1], 2))
    assert dense_flops(model, batch) == [flops.forward(counts).dense, flops.training(counts).dense]


def test_sums_of_a_hand_counted_triangle():
    # 3 nodes, 6 directed edges, 2 layers of width 4: GIN sums 8 columns, GCN 4; pooling 3 rows.
    flops = ModelOptions(hidden=4, layers=2).flops(Shape(2, 2))
    counts = GraphCounts(1, 3, 6)
    assert flops.forward(counts).sparse == 2 * 6 * (8 + 4) + 3 * 4
    assert flops.training(counts).sparse == 2 * (2 * 6 * (8 + 4)) + 3 * 4
