"""Steps of several clients at once are those of each alone."""

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client import group_steps
from fedmpi.client.group_rows import GroupRows, numbers_layout, step_of_group
from fedmpi.client.group_steps import HostStep, Masks, Steps, pieces
from fedmpi.client.optimizer import AdamState, descend
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.networks import grouped_network
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import GinOptions
from tests.making import flat, generated
from tests.on_device import OnDevice


@dataclass
class Owner:
    id: int
    adam: AdamState


CPU = torch.device("cpu")


def numbers_of(options, owners, steps, masks):
    """Return the numbers of steps whose batches hold one graph of each client."""
    graphs = GroupGraphs([generated(0, 3)] * len(owners), CPU, rounded=False)
    batches = graphs.batches([dict.fromkeys(who, np.array([0])) for who in steps])
    taken = []

    class Noted(Steps):
        def _take(self, batch, numbers):
            taken.append(numbers)
            return torch.zeros(1, 1), torch.zeros(1, 1)

    Noted(None, graphs, GroupRows.starting(torch.zeros(1, 1)), owners, options, None, None).take(
        batches, masks
    )
    return taken


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


RATES = {"lr": 0.1, "weight_decay": 0.01}
BETAS = {"beta1": 0.5, "beta2": 0.75}


@pytest.mark.parametrize(
    "options",
    [
        AdamOptions(**RATES, **BETAS),
        AdamWOptions(**RATES, **BETAS),
        SgdOptions(**RATES),
        SgdOptions(**RATES, momentum=0.5),
    ],
)
def test_a_group_steps_as_its_active_members_do_alone(options):
    torch.manual_seed(1)
    rows = GroupRows.starting(torch.randn(3, 50))
    alone, owners = rows.parameters.clone(), [Owner(number, AdamState(50)) for number in range(3)]
    states = [AdamState(50) for _ in range(3)]
    steps = ([0, 1, 2], [0, 2], [2])
    for who, numbers in zip(steps, numbers_of(options, owners, steps, Masks(1, 0, 4)), strict=True):
        gradient = torch.randn(len(who), 50)
        acting = rows.of(numbers)
        step_of_group(options, acting, gradient, numbers)
        rows.take(acting, numbers)
        for row, client in enumerate(who):
            descend(options, states[client], alone[client], gradient[row])
    assert torch.allclose(rows.parameters, alone, rtol=1e-5, atol=1e-6)
    assert [owner.adam.steps for owner in owners] == [2, 1, 3]
    assert torch.allclose(rows.mean[1], states[1].mean)
    assert torch.allclose(rows.square[1], states[1].square)


def test_masks_are_those_of_each_client_by_its_own_steps():
    owners = [Owner(number, AdamState(1)) for number in (4, 7)]
    steps = ([0, 1], [0], [0, 1])
    found = numbers_of(AdamOptions(), owners, steps, Masks(3, 2, 5))
    assert [each.who.tolist() for each in found] == list(steps)
    assert [each.active[:, 0].tolist() for each in found] == [[True, True], [True, False], [True, True]]
    places = (((4, 2, 0), (7, 2, 0)), ((4, 2, 1),), ((4, 2, 2), (7, 2, 1)))
    for numbers, of in zip(found, places, strict=True):
        assert numbers.keys.tolist() == [
            DropoutStreams(3, *each).keys(5).view(np.int64).tolist() for each in of
        ]


class Eager:
    """Stands for a captured action on the CPU: it is tried when it is made, and must not wait for a device."""

    made = 0

    def __init__(self, action):
        type(self).made += 1
        action()
        self._action = action

    def run(self):
        with OnDevice():
            return self._action()


def rounds_of(parts):
    """Return orders of graphs, round by round: shuffled ones of some clients, and all of all."""
    rng = np.random.default_rng(4)
    for who in ([0, 2], [0, 1, 2], [2], [0, 2], [0, 2]):
        first = [{place: rng.permutation(parts[place].num_graphs)[:7] for place in who} for _ in range(3)]
        yield [*first, {2: rng.permutation(12)[:5]}]


@pytest.mark.parametrize("kept", [256, 1])
def test_replayed_steps_are_those_taken_anew(monkeypatch, kept):
    monkeypatch.setattr(group_steps, "_KEPT_STEPS", kept)
    monkeypatch.setattr(Eager, "made", 0)
    parts = [generated(*span) for span in ((0, 12), (12, 20), (20, 32))]
    options = GinOptions(hidden=8, layers=2)
    model = flat(options, parts[0].feature_rows.shape[1])
    start = torch.stack([model.initialise(3, number) for number in range(3)])
    graphs = GroupGraphs(parts, CPU, rounded=True)
    network = grouped_network(options, model)
    everything = graphs.resident(dict.fromkeys(range(3)))
    rounds = [[everything, *graphs.batches(orders), everything] for orders in rounds_of(parts)]
    found = []
    for capture in (None, Eager):
        rows = GroupRows.starting(start.clone())
        owners = [Owner(number, AdamState(1)) for number in range(3)]
        steps = Steps(network, graphs, rows, owners, AdamOptions(), None, capture)
        taken = []
        for batches in rounds:
            taken += steps.take(batches, Masks(3, 0, 3))
        found.append([*rows.all, *taken])
    for anew, replayed in zip(*found, strict=True):
        assert torch.equal(anew, replayed)
    assert Eager.made == (10 if kept > 1 else 19)  # of 23 pieces


class Forgetful(Eager):
    """As a CUDA graph: it knows addresses alone."""

    def __init__(self, action):
        self._found = action()

    def run(self):
        return self._found


def test_what_captured_steps_read_stays_in_memory():
    read = []

    class Noted(Steps):
        def _take(self, batch, numbers):
            read.append(weakref.ref(batch.pooling))
            return torch.zeros(1, 1), torch.zeros(1, 1)

    graphs, owner = GroupGraphs([generated(0, 3)], CPU, rounded=True), Owner(0, AdamState(1))
    batches = graphs.batches([{0: np.array([2, 0])}])
    steps = Noted(
        None, graphs, GroupRows.starting(torch.zeros(1, 1)), [owner], AdamOptions(), None, Forgetful
    )
    steps.take(batches, Masks(3, 0, 1))
    gc.collect()
    assert [each() is not None for each in read] == [True]


def test_a_round_is_cut_into_pieces_of_steps_of_one_kind_as_long_as_powers_of_two():
    graphs = GroupGraphs([generated(0, 40), generated(40, 80)], CPU, rounded=True)
    orders = [{0: np.arange(8), 1: np.arange(8)}] * 3 + [{0: np.arange(8)}] * 23
    steps = [HostStep(batch, numbers_layout(len(batch.who), 2, 4)) for batch in graphs.batches(orders)]
    found = list(pieces(steps))
    assert [len(piece) for piece in found] == [1, 2, 1, 2, 4, 16]
    assert [step for piece in found for step in piece] == steps
