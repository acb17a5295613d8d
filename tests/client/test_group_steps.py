"""Steps of several clients at once are those of each alone."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client import group_steps
from fedmpi.client.group_steps import GroupRows, Masks, Steps, step_numbers, step_of_group
from fedmpi.client.optimizer import AdamState, descend
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.networks import grouped_network
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import GinOptions
from tests.making import flat, generated


@dataclass
class Owner:
    id: int
    adam: AdamState


CPU = torch.device("cpu")


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
    for who, host in zip(steps, step_numbers(options, owners, steps, Masks(1, 0, 4), CPU), strict=True):
        numbers, gradient = host.sent(CPU), torch.randn(len(who), 50)
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
    hosts = step_numbers(AdamOptions(), owners, steps, Masks(3, 2, 5), CPU)
    found = [each.sent(CPU) for each in hosts]
    assert [each.who.tolist() for each in found] == list(steps)
    assert [each.active[:, 0].tolist() for each in found] == [[True, True], [True, False], [True, True]]
    places = (((4, 2, 0), (7, 2, 0)), ((4, 2, 1),), ((4, 2, 2), (7, 2, 1)))
    for numbers, of in zip(found, places, strict=True):
        assert numbers.keys.tolist() == [DropoutStreams(3, *each).keys(5) for each in of]


class Eager:
    """Stands for a captured step on the CPU: a trial when it is made, then the action itself."""

    made = 0

    def __init__(self, action):
        type(self).made += 1
        action()
        self.run = action


@pytest.mark.parametrize("kept", [128, 1])
def test_replayed_steps_are_those_taken_anew(monkeypatch, kept):
    monkeypatch.setattr(group_steps, "_KEPT_REPLAYS", kept)
    monkeypatch.setattr(Eager, "made", 0)
    rng = np.random.default_rng(4)
    parts = [generated(*span) for span in ((0, 40), (40, 50), (50, 90))]
    model = flat(GinOptions(), parts[0].feature_rows.shape[1])
    start = torch.stack([model.initialise(3, number) for number in range(3)])
    graphs = GroupGraphs(parts, CPU, rounded=True)
    gin = grouped_network(GinOptions(), model)
    everything = graphs.resident([None] * 3, range(3))
    batches, sizes = [], set()
    for who in ([0, 2], [0, 1, 2], [2], [0, 2], [0, 2], [2], [1]):
        orders = [rng.permutation(parts[place].num_graphs)[:7] for place in who]
        batches += [graphs.batch(orders, who), everything]
        sizes.add(batches[-2].sizes)
    found = []
    for capture in (None, Eager):
        rows = GroupRows.starting(start.clone())
        owners = [Owner(number, AdamState(1)) for number in range(3)]
        steps = Steps(gin, graphs, rows, AdamOptions(), None, capture)
        who = [batch.who for batch in batches]
        numbers = step_numbers(AdamOptions(), owners, who, Masks(3, 0, 4), CPU)
        taken = [steps.take(*each) for each in zip(batches, numbers, strict=True)]
        found.append([*rows.all, *(tensor for pair in taken for tensor in pair)])
    for anew, replayed in zip(*found, strict=True):
        assert torch.equal(anew, replayed)
    assert len(sizes) < 7  # some are met again
    assert Eager.made == len(sizes) + 1 if kept > 1 else Eager.made == len(batches)
