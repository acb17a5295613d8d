from dataclasses import dataclass

import pytest
import torch

from fedmpi.engine.case import AdamOptions, AdamWOptions
from fedmpi.engine.group_steps import Rows, adam_step_of_group, step_numbers
from fedmpi.engine.optimizer import AdamState, adam_step


@pytest.mark.parametrize(
    ("options", "torchs"),
    [
        (AdamOptions(weight_decay=0.0), torch.optim.Adam),
        (AdamOptions(weight_decay=5e-4), torch.optim.Adam),
        (AdamWOptions(weight_decay=0.1), torch.optim.AdamW),
    ],
)
def test_equals_torchs(options, torchs):
    torch.manual_seed(1)
    flat = torch.randn(1000)
    pieces = [torch.nn.Parameter(flat[:300].clone()), torch.nn.Parameter(flat[300:].clone())]
    theirs = torchs(pieces, lr=1e-3, weight_decay=options.weight_decay, foreach=False)
    state = AdamState(1000)
    for _ in range(25):
        gradient = torch.randn(1000)
        pieces[0].grad, pieces[1].grad = gradient[:300].clone(), gradient[300:].clone()
        theirs.step()
        adam_step(options, state, flat, gradient)
    assert torch.allclose(flat, torch.cat([piece.detach() for piece in pieces]), rtol=1e-6, atol=1e-7)


def test_the_gradient_is_left_as_it_was():
    gradient = torch.ones(3)
    adam_step(AdamOptions(), AdamState(3), torch.ones(3), gradient)
    assert gradient.tolist() == [1, 1, 1]


@dataclass
class Owner:
    id: int
    adam: AdamState


@pytest.mark.parametrize("kind", [AdamOptions, AdamWOptions])
def test_a_group_steps_as_its_active_members_do_alone(kind):
    torch.manual_seed(1)
    options, rows = kind(lr=0.1, beta1=0.5, beta2=0.75), Rows.starting(torch.randn(3, 50))
    alone, owners = rows.parameters.clone(), [Owner(number, AdamState(50)) for number in range(3)]
    states = [AdamState(50) for _ in range(3)]
    active = ([True, True, True], [True, False, True], [False, False, True])
    for acting, numbers in zip(
        active, step_numbers(options, owners, active, (1, 0, 4), torch.device("cpu")), strict=True
    ):
        gradient = torch.randn(3, 50)
        adam_step_of_group(options, rows, gradient, numbers)
        for client in range(3):
            if acting[client]:
                adam_step(options, states[client], alone[client], gradient[client])
    assert torch.allclose(rows.parameters, alone, rtol=1e-5, atol=1e-6)
    assert [owner.adam.steps for owner in owners] == [2, 1, 3]
    assert torch.allclose(rows.square[1], states[1].square)
