"""The compiled losses equal torch's in double precision, gradients too."""

import numpy as np
import pytest
import torch

from fedmpi.graphs.csr import Csr
from fedmpi.kernels import losses
from fedmpi.kernels.feed_forward import FastFeedForward
from fedmpi.kernels.loss_loops import log_one_plus, negative_exponential
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinEncoderOptions, Shape
from fedmpi.objectives import contrast
from fedmpi.objectives.contrast import jensen_shannon
from fedmpi.objectives.unsupervised import InfoGraphNetwork
from tests.making import assert_close

SIZES = np.array([3, 1, 40, 7, 100])
CLASS_OF_NODE = np.random.default_rng(1).integers(0, 90, SIZES.sum())


def vectors(count, width, scale, number):
    values = np.random.default_rng(number).standard_normal((count, width)) * scale
    return torch.from_numpy(values.astype(np.float32)).requires_grad_()


def test_exponential_and_logarithm():
    x = np.linspace(0, 40, 10001, dtype=np.float32)
    found = np.array([negative_exponential(each) for each in x])
    assert np.allclose(found, np.exp(-x.astype(np.float64)), rtol=3e-7, atol=0)
    assert negative_exponential(np.float32(1e30)) == found[-1]
    found = np.array([log_one_plus(each) for each in x / 40])
    assert np.allclose(found, np.log1p(x.astype(np.float64) / 40), rtol=3e-7, atol=1e-12)


@pytest.mark.parametrize("width", [32, 20])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_jensen_shannon(scale, width):
    nodes, graphs = vectors(90, width, scale, 2), vectors(len(SIZES), width, scale, 3)
    owners = np.repeat(np.arange(len(SIZES)), SIZES)
    expected = [each.detach().double().requires_grad_() for each in (nodes, graphs)]
    loss = jensen_shannon(expected[0][CLASS_OF_NODE], expected[1], torch.from_numpy(owners))
    loss.backward()
    pointers = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int32)
    ones = np.ones(len(owners), np.float32)
    pooling = Csr(pointers, CLASS_OF_NODE.astype(np.int32), ones, 90)
    found = losses.jensen_shannon(nodes, graphs, pooling.transposed)
    (2 * found).backward()
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    assert_close(nodes.grad, 2 * expected[0].grad)
    assert_close(graphs.grad, 2 * expected[1].grad)


def test_a_vector_that_is_not_finite_makes_a_loss_that_is_none():
    numbers = np.arange(4, dtype=np.int32)
    members = Csr(numbers, numbers[:3], np.ones(3, np.float32), 3)
    for bad in (float("nan"), float("inf")):
        nodes, graphs = vectors(3, 16, 1.0, 2), vectors(3, 16, 1.0, 3)
        with torch.no_grad():
            nodes[1, 4] = bad
        assert not losses.jensen_shannon(nodes, graphs, members).isfinite()
        assert not losses.inter(nodes, graphs.detach(), torch.ones(3), 0.5).isfinite()


@pytest.mark.parametrize("temperature", [0.02, 0.5])
def test_inter_counts_every_node(temperature):
    local, difference = vectors(30, 20, 3.0, 4), vectors(30, 20, 1.0, 5).detach()
    counts = np.random.default_rng(6).integers(1, 9, 30)
    expected = local.detach().double().requires_grad_()
    every = np.repeat(np.arange(30), counts)
    loss = contrast.inter(expected[every], difference.double()[every], temperature)
    loss.backward()
    found = losses.inter(local, difference, torch.from_numpy(counts).float(), temperature)
    found.backward()
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    assert_close(local.grad, expected.grad)


@pytest.mark.parametrize("hidden", [32, 10])
def test_head(hidden):
    model = FlatModel(InfoGraphNetwork(GinEncoderOptions(hidden=hidden, layers=3), Shape(4, 2)))
    model.parameters.copy_(model.initialise(1, 0))
    x = vectors(150, 3 * hidden, 1.0, 7)
    upstream = vectors(150, 3 * hidden, 1.0, 8).detach()
    found = []
    for head in (model.module.node_head, FastFeedForward(model, "node_head", Scratch())):
        model.gradient.zero_()
        x.grad = None
        out = head(x)
        (out * upstream).sum().backward()
        found.append((out.detach(), x.grad, model.gradient.clone()))
    for expected, ours in zip(*found, strict=True):
        assert_close(ours, expected)
