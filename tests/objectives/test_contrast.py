"""Losses of vectors against hand-computed numbers and their own definitions."""

import math

import pytest
import torch
from torch.nn.functional import softplus

from fedmpi.objectives import contrast


@pytest.fixture
def vectors():
    torch.manual_seed(3)
    return [torch.randn(6, 5, requires_grad=first) for first in (True, False, False)]


def test_intra_of_two_graphs_whose_views_agree():
    # Each anchor: its partner has similarity 1, the two views of the other graph 0.
    views = torch.eye(2)
    expected = math.log(math.exp(1 / 0.5) + 2) - 1 / 0.5
    assert contrast.intra(views, 7 * views, 0.5).item() == pytest.approx(expected)


def test_intra_is_the_mean_over_all_anchors_of_eq_5(vectors):
    first, second, _ = (each.detach() for each in vectors)
    both, tau, total = torch.cat([first, second]), 0.3, 0.0
    for anchor in range(12):
        scores = [float(both[anchor] @ both[other]) / tau for other in range(12)]
        others = [math.exp(score) for other, score in enumerate(scores) if other != anchor]
        total += math.log(sum(others) / math.exp(scores[(anchor + 6) % 12]))
    assert contrast.intra(first, second, tau, normalised=False).item() == pytest.approx(total / 12, rel=1e-5)


def test_intra_of_sums_over_many_nodes_is_finite():
    torch.manual_seed(1)
    large = 1e5 * torch.randn(4, 8)
    assert torch.isfinite(contrast.intra(large, large, 0.1, normalised=False))


def test_inter_of_equal_copies_is_log_2_without_gradient(vectors):
    local, received, _ = vectors
    loss = contrast.inter(local, contrast.apart(received, received), 0.5)
    assert loss.item() == pytest.approx(contrast.LOG_2) == pytest.approx(0.693147, abs=1e-6)
    (gradient,) = torch.autograd.grad(loss, local)
    assert gradient.abs().max() == 0


def test_inter_is_moons_two_way_cross_entropy(vectors):
    local, received, previous = vectors
    similarity = torch.nn.functional.cosine_similarity
    logits = torch.stack([similarity(local, received), similarity(local, previous)], dim=1) / 0.5
    expected = torch.nn.functional.cross_entropy(logits, torch.zeros(6, dtype=torch.long))
    assert contrast.inter(local, contrast.apart(received, previous), 0.5).item() == pytest.approx(
        expected.item()
    )


def test_divergence_is_eq_2():
    # Softmax of (0, log 3) is (1/4, 3/4), of (0, 0) is (1/2, 1/2).
    local, received = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, math.log(3)]])
    expected = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert contrast.divergence(local, received, 1.0).item() == pytest.approx(expected)
    assert contrast.divergence(2 * local, 2 * received, 2.0).item() == pytest.approx(expected)
    assert contrast.divergence(received, received, 0.5).item() == pytest.approx(0, abs=1e-7)


def test_squared_distance_is_eq_3_of_unit_vectors_or_as_they_are():
    local, received = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]])
    assert contrast.squared_distance(local, received).item() == pytest.approx(2)
    assert contrast.squared_distance(local, received, normalised=False).item() == pytest.approx(25)


def by_masks(nodes, graphs, owner):
    """Return the Jensen-Shannon bound by the definition with masks that the official codes have."""
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


def test_the_bound_and_its_gradient_are_those_of_the_masked_reference(batch):
    assert contrast.jensen_shannon(*batch).item() == pytest.approx(by_masks(*batch).item())
    found, expected = (
        torch.autograd.grad(loss(*batch), batch[0])[0] for loss in (contrast.jensen_shannon, by_masks)
    )
    assert torch.allclose(found, expected)
    assert (
        contrast.jensen_shannon(torch.zeros(4, 2), torch.zeros(2, 2), torch.tensor([0, 0, 1, 1])).item() == 0
    )
