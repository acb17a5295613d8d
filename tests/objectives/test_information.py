"""The Jensen-Shannon bound equals the definition by masks that the official codes have."""

import math

import pytest
import torch
from torch.nn.functional import softplus

from fedmpi.objectives.information import jensen_shannon


def by_masks(nodes, graphs, owner):
    own = torch.nn.functional.one_hot(owner, len(graphs)).float()
    scores = nodes @ graphs.T
    positive = math.log(2) - softplus(-scores * own)
    negative = softplus(-scores * (1 - own)) + scores * (1 - own) - math.log(2)
    return negative.sum() / (len(nodes) * (len(graphs) - 1)) - positive.sum() / len(nodes)


@pytest.fixture
def batch():
    torch.manual_seed(2)
    nodes = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
    return nodes, torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2])


def test_equals_the_masked_reference(batch):
    assert jensen_shannon(*batch).item() == pytest.approx(by_masks(*batch).item())


def test_its_gradient_equals_the_masked_references(batch):
    found, expected = (torch.autograd.grad(loss(*batch), batch[0])[0] for loss in (jensen_shannon, by_masks))
    assert torch.allclose(found, expected)


def test_zero_scores_give_zero():
    assert jensen_shannon(torch.zeros(4, 2), torch.zeros(2, 2), torch.tensor([0, 0, 1, 1])).item() == 0


def test_does_not_depend_on_the_order_of_the_graphs(batch):
    nodes, graphs, owner = batch
    order = torch.tensor([2, 0, 1])
    shuffled = jensen_shannon(nodes, graphs[order], torch.argsort(order)[owner])
    assert shuffled.item() == pytest.approx(jensen_shannon(*batch).item())
