from functools import partial

import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client.optimizer import AdamState, descend


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


def test_the_gradient_is_left_as_it_was():
    gradient = torch.ones(3)
    descend(AdamOptions(), AdamState(3), torch.ones(3), gradient)
    assert gradient.tolist() == [1, 1, 1]
