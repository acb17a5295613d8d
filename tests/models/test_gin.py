import torch

from fedmpi.models.counts import GraphCounts
from fedmpi.models.flat import FlatModel
from fedmpi.models.flops import GinFlops
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape
from tests.making import flat


def conv(name):
    return name.startswith("conv.")


def test_a_model_on_another_device_starts_as_on_the_cpu(monkeypatch):
    """A device has a generator of its own, which draws other numbers: "meta" has none and no values."""
    alone, taken = flat(GinOptions()), []
    elsewhere = FlatModel(build(GinOptions(), Shape(3, 2)), "meta")
    original = torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda own, other: taken.append(other) or original(own, other))
    assert elsewhere.initialise(4, 7).device.type == "meta"
    monkeypatch.undo()
    assert torch.equal(taken[-1], alone.initialise(4, 7))


def test_parameter_counts_are_those_of_the_released_code():
    model = flat(GinOptions())
    assert model.num_parameters == 29_506
    assert model.shared(conv).size == 24_960
    assert model.shared(lambda name: True).size == 29_506
    assert 4 * model.shared(conv).size == 99_840


def test_tensors_start_at_64_bytes_and_padding_stays_zero():
    model = flat(GinOptions(hidden=20), width=37, classes=3)
    assert all(slot.start % 16 == 0 for slot in model.slots)
    row = model.initialise(seed=4, owner=1)
    inside = torch.zeros(model.length, dtype=torch.bool)
    for slot in model.slots:
        inside[slot.start : slot.stop] = True
    assert not row[~inside].any()
    assert int(inside.sum()) == model.num_parameters


def test_initialisation_depends_on_seed_and_owner_alone():
    first, second = flat(GinOptions()), flat(GinOptions())
    torch.rand(5)
    assert torch.equal(first.initialise(1, 2), second.initialise(1, 2))
    assert not torch.equal(first.initialise(1, 2), first.initialise(1, 3))
    assert not torch.equal(first.initialise(1, 2), first.initialise(2, 2))


def test_the_shared_start_does_not_depend_on_the_width_of_the_input():
    narrow, wide = flat(GinOptions(), width=3), flat(GinOptions(), width=53)
    rows = [(model, model.initialise(9, 0)) for model in (narrow, wide)]
    packed = [model.shared(conv).pack(row) for model, row in rows]
    assert torch.equal(packed[0], packed[1])


def test_pack_and_unpack_are_inverse_and_touch_nothing_else():
    model = flat(GinOptions())
    shared, row = model.shared(conv), model.initialise(1, 1)
    other = torch.zeros_like(row)
    shared.unpack(shared.pack(row), other)
    assert torch.equal(shared.pack(other), shared.pack(row))
    assert int((other != 0).sum()) <= shared.size


def test_flops_of_a_hand_counted_graph():
    # One triangle (3 nodes, 6 directed edges), width 2, hidden 4, one layer, 2 classes.
    flops = GinFlops(GinOptions(hidden=4, layers=1), Shape(2, 2))
    counts = GraphCounts(1, 3, 6)
    forward = flops.forward(counts)
    assert forward.dense == 2 * 3 * 2 * 4 + 2 * (2 * 3 * 4 * 4) + 2 * 4 * 4 + 2 * 4 * 2
    assert forward.sparse == 6 * 4 + 3 * 4
    assert flops.training(counts).dense == 3 * forward.dense - 2 * 3 * 2 * 4
    assert flops.training(counts).sparse == 2 * 6 * 4 + 3 * 4
    executed = flops.executed(counts, training=False, kernels="csr")
    assert executed == forward.dense + 2 * (6 + 3) * 4 + 2 * 3 * 4
