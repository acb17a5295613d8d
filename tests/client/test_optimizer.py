from functools import partial

import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client.optimizer import AdamState, clipped_rows, descend, descent, steps_ahead
from fedmpi.kernels.vectors import descend as fused_step


@pytest.mark.parametrize(
    ("options", "torchs"),
    [
        (AdamOptions(weight_decay=0.0), torch.optim.Adam),
        (AdamOptions(weight_decay=5e-4), torch.optim.Adam),
        (AdamWOptions(weight_decay=0.1), torch.optim.AdamW),
        (SgdOptions(lr=1e-3, weight_decay=0.1), torch.optim.SGD),
        (SgdOptions(lr=1e-3, weight_decay=0.1, momentum=0.9), partial(torch.optim.SGD, momentum=0.9)),
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
        descend(options, state, flat, gradient)
    assert torch.allclose(flat, torch.cat([piece.detach() for piece in pieces]), rtol=1e-6, atol=1e-7)


def test_a_descent_reads_the_gradient_at_each_step():
    flat, gradient, state = torch.zeros(1), torch.ones(1), AdamState(1)
    step = descent(AdamOptions(lr=0.5, weight_decay=0.0), state, flat, gradient)
    step()
    assert (flat.item(), state.steps) == (pytest.approx(-0.5, rel=1e-4), 1)
    gradient.zero_()
    step()
    assert (state.mean.item(), state.steps) == (pytest.approx(0.09, rel=1e-4), 2)


def test_the_gradient_is_left_as_it_was():
    gradient = torch.ones(3)
    descend(AdamOptions(), AdamState(3), torch.ones(3), gradient)
    assert gradient.tolist() == [1, 1, 1]


@pytest.mark.parametrize("options", [AdamOptions(clip=2.0), SgdOptions(lr=1e-3, momentum=0.9, clip=2.0)])
@pytest.mark.parametrize("length", [0.5, 8.0])
def test_a_gradient_is_clipped_as_torch_does(options, length):
    torch.manual_seed(1)
    flat = torch.randn(40)
    theirs = torch.nn.Parameter(flat.clone())
    kinds = {"adam": torch.optim.Adam, "sgd": partial(torch.optim.SGD, momentum=0.9)}
    step = kinds[options.name]([theirs], lr=1e-3, weight_decay=options.weight_decay)
    state = AdamState(40)
    for _ in range(5):
        gradient = torch.randn(40)
        gradient *= length / gradient.norm()
        theirs.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([theirs], 2.0)
        step.step()
        descend(options, state, flat, gradient)
        assert gradient.norm().item() == pytest.approx(length)
    assert torch.allclose(flat, theirs.detach(), rtol=1e-6, atol=1e-7)


def test_rows_are_clipped_each_by_its_own_norm():
    rows = clipped_rows(torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), 1.0)
    assert torch.allclose(rows, torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))


def test_fused_steps_clip_as_single_ones():
    torch.manual_seed(1)
    for options in (AdamOptions(clip=0.5), SgdOptions(lr=0.1, clip=0.5)):
        one, gradient = torch.randn(33), torch.randn(33)
        fused, states = one.clone(), (AdamState(33), AdamState(33))
        descent = steps_ahead(options, states[0], 1)
        vectors = (fused, gradient, states[0].mean, states[0].square)
        fused_step(descent, 0, *(each.numpy() for each in vectors))
        descend(options, states[1], one, gradient)
        assert torch.allclose(one, fused, rtol=1e-6)
