"""Steps of several clients at once are those of each alone."""

from dataclasses import dataclass

import pytest
import torch

from fedmpi.case.schema import AdamOptions, AdamWOptions
from fedmpi.engine.group_steps import GroupRows, Masks, adam_step_of_group, step_numbers
from fedmpi.engine.optimizer import AdamState, adam_step
from fedmpi.models.dropout import DropoutStreams


@dataclass
class Owner:
    id: int
    adam: AdamState


CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", [AdamOptions, AdamWOptions])
def test_a_group_steps_as_its_active_members_do_alone(kind):
    torch.manual_seed(1)
    options, rows = kind(lr=0.1, beta1=0.5, beta2=0.75), GroupRows.starting(torch.randn(3, 50))
    alone, owners = rows.parameters.clone(), [Owner(number, AdamState(50)) for number in range(3)]
    states = [AdamState(50) for _ in range(3)]
    steps = ([0, 1, 2], [0, 2], [2])
    for who, host in zip(steps, step_numbers(options, owners, steps, Masks(1, 0, 4), CPU), strict=True):
        numbers, gradient = host.sent(CPU), torch.randn(len(who), 50)
        acting = rows.of(numbers)
        adam_step_of_group(options, acting, gradient, numbers)
        rows.take(acting, numbers)
        for row, client in enumerate(who):
            adam_step(options, states[client], alone[client], gradient[row])
    assert torch.allclose(rows.parameters, alone, rtol=1e-5, atol=1e-6)
    assert [owner.adam.steps for owner in owners] == [2, 1, 3]
    assert torch.allclose(rows.square[1], states[1].square)


def test_masks_are_those_of_each_client_by_its_own_steps():
    owners = [Owner(number, AdamState(1)) for number in (4, 7)]
    steps = ([0, 1], [0], [0, 1])
    hosts = step_numbers(AdamOptions(), owners, steps, Masks(3, 2, 5), CPU)
    found = [each.sent(CPU) for each in hosts]
    assert [each.who.tolist() for each in found] == list(steps)
    assert [each.active[:, 0].tolist() for each in found] == [[True, True], [True, False], [True, True]]
    for numbers, of in zip(
        found, (((4, 2, 0), (7, 2, 0)), ((4, 2, 1),), ((4, 2, 2), (7, 2, 1))), strict=True
    ):
        assert numbers.keys.tolist() == [DropoutStreams(3, *each).keys(5) for each in of]
