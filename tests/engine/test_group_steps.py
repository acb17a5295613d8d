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


@pytest.mark.parametrize("kind", [AdamOptions, AdamWOptions])
def test_a_group_steps_as_its_active_members_do_alone(kind):
    torch.manual_seed(1)
    options, rows = kind(lr=0.1, beta1=0.5, beta2=0.75), GroupRows.starting(torch.randn(3, 50))
    alone, owners = rows.parameters.clone(), [Owner(number, AdamState(50)) for number in range(3)]
    states = [AdamState(50) for _ in range(3)]
    active = ([True, True, True], [True, False, True], [False, False, True])
    for acting, numbers in zip(
        active, step_numbers(options, owners, active, Masks(1, 0, 4), torch.device("cpu")), strict=True
    ):
        gradient = torch.randn(3, 50)
        adam_step_of_group(options, rows, gradient, numbers)
        for client in range(3):
            if acting[client]:
                adam_step(options, states[client], alone[client], gradient[client])
    assert torch.allclose(rows.parameters, alone, rtol=1e-5, atol=1e-6)
    assert [owner.adam.steps for owner in owners] == [2, 1, 3]
    assert torch.allclose(rows.square[1], states[1].square)


def test_masks_are_those_of_each_client_by_its_own_steps():
    owners = [Owner(number, AdamState(1)) for number in (4, 7)]
    active = ([True, True], [True, False], [True, True])
    found = step_numbers(AdamOptions(), owners, active, Masks(3, 2, 5), torch.device("cpu"))
    assert [each.active[:, 0].tolist() for each in found] == list(active)
    for number, (first, second) in enumerate(((0, 0), (1, 1), (2, 1))):
        expected = [DropoutStreams(3, *of).keys(5) for of in ((4, 2, first), (7, 2, second))]
        assert found[number].keys.tolist() == expected
