import torch

from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import FedStarOptions as ModelOptions
from fedmpi.models.options import GinOptions, Shape
from tests.algorithms.programs import named
from tests.making import flat


def test_parameters_on_mutag_are_those_of_the_released_code():
    model = flat(ModelOptions(), 7)
    assert model.num_parameters == 64_898
    fedstar = named("fedstar")
    assert model.shared(lambda name: fedstar.shares(name, "conv")).size == 14_592


def test_the_matched_gin_has_as_many_parameters_within_a_quarter_of_a_percent():
    gin = flat(GinOptions(hidden=95), 7)
    assert gin.num_parameters == 64_792


def test_fedavg_shares_both_channels_of_convolutions():
    fedavg = named("fedavg")
    assert flat(ModelOptions(), 7).shared(lambda name: fedavg.shares(name, "conv")).size == 14_592 + 37_248


def test_without_sharing_every_client_is_alone():
    alone = named("fedstar", sharing=False)
    assert not alone.communicates
    assert alone.groups(3).tolist() == [0, 1, 2]
    assert named("fedstar").communicates


def test_the_structure_channel_does_not_read_the_features(batch):
    model = flat(ModelOptions(), batch.x.shape[1])
    channel = model.module.structure
    s = channel.embed(batch.structure)
    for gcn in channel.conv:
        s = torch.tanh(gcn(batch, s, "csr"))
    parameters = [p for name, p in model.module.named_parameters() if not name.startswith("structure.")]
    assert all(gradient is None for gradient in torch.autograd.grad(s.sum(), parameters, allow_unused=True))


def test_sums_of_a_hand_counted_triangle():
    # 3 nodes, 6 directed edges, 2 layers of width 4: GIN sums 8 columns, GCN 4; pooling 3 rows.
    flops = ModelOptions(hidden=4, layers=2).flops(Shape(2, 2))
    counts = GraphCounts(1, 3, 6)
    assert flops.forward(counts).sparse == 2 * 6 * (8 + 4) + 3 * 4
    assert flops.training(counts).sparse == 2 * (2 * 6 * (8 + 4)) + 3 * 4
