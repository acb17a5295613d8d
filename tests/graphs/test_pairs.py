"""Dot products of pairs and products by rows: what torch gives, and its gradient."""

import numpy as np
import pytest
import torch

from fedmpi.graphs.pairs import Pairs
from fedmpi.graphs.sparse import RowProduct, fits, transposed


@pytest.mark.parametrize("width", [16, 48, 64])
def test_dots_and_their_gradient_are_those_of_gathered_rows(width):
    generator = np.random.default_rng(width)
    places = generator.integers(0, 30, (200, 2))
    places[:3] = [[4, 4], [5, 6], [6, 5]]  # a node with itself; the same nodes in both orders
    x = torch.from_numpy(generator.standard_normal((40, width), dtype=np.float32)).requires_grad_()
    weights = torch.from_numpy(generator.standard_normal(200, dtype=np.float32))
    ours = Pairs.of(places, 40).dots(x)
    (ours * weights).sum().backward()
    own, x.grad = x.grad, None
    theirs = (x[places[:, 0]] * x[places[:, 1]]).sum(dim=1)
    (theirs * weights).sum().backward()
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert torch.allclose(own, x.grad, rtol=1e-5, atol=1e-5)
    assert not own[30:].any()


def test_no_pairs_have_no_dots():
    x = torch.ones(3, 16, requires_grad=True)
    found = Pairs.of(np.zeros((0, 2), np.int64), 3).dots(x)
    found.sum().backward()
    assert len(found) == 0
    assert not x.grad.any()


def test_a_nan_stays_in_the_dots_of_its_node():
    x = torch.ones(3, 16)
    x[1, 5] = float("nan")
    assert Pairs.of(np.array([[0, 2], [0, 1]]), 3).dots(x).isnan().tolist() == [False, True]


def test_a_product_by_rows_and_its_gradient_are_those_of_the_matrix():
    generator = np.random.default_rng(0)
    matrix = generator.standard_normal((20, 20)) * (generator.random((20, 20)) < 0.2)
    matrix[3] = 0
    rows, columns = np.nonzero(matrix)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=20))])
    back, others, places = transposed(pointers, columns)
    values = matrix[rows, columns]
    product = RowProduct((pointers, columns, values), (back, others, values[places]))
    x = torch.from_numpy(generator.standard_normal((20, 32), dtype=np.float32)).requires_grad_()
    found = product(x)
    found.square().sum().backward()
    own, x.grad = x.grad, None
    wanted = torch.from_numpy(matrix).float() @ x
    wanted.square().sum().backward()
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert torch.allclose(own, x.grad, rtol=1e-5, atol=1e-4)


def test_other_widths_are_torchs():
    assert [fits(torch.zeros(2, width)) for width in (16, 24, 32)] == [True, False, True]
