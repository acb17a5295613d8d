import numpy as np
import pytest

from fedmpi.graphs import products


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 3, 4, 70])
@pytest.mark.parametrize("width", [16, 64, 80, 144])
@pytest.mark.parametrize("depth", [1, 7, 64])
def test_products_of_any_size(rows, depth, width):
    a, b, out = random(rows, depth), random(depth, width), np.full((rows, width), 9, np.float32)
    products.multiply(a, b, out)
    assert np.allclose(out, a @ b, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 5, 64])
def test_a_weight_gradient_is_added(columns):
    a, b, out = random(50, columns), random(50, 80), np.ones((columns, 80), np.float32)
    products.add_transposed_times(a, 10, 30, b, 15, out)
    assert np.allclose(out, 1 + a[10:40].T @ b[15:45], atol=1e-4)


def test_an_element_does_not_depend_on_the_other_rows():
    a, b = random(70, 64), random(64, 80)
    together, alone = np.empty((70, 80), np.float32), np.empty((1, 80), np.float32)
    products.multiply(a, b, together)
    for row in (0, 3, 68, 69):
        products.multiply(a[row : row + 1], b, alone)
        assert np.array_equal(alone[0], together[row])


def test_a_sparse_product_with_an_empty_row():
    pointers, columns = np.array([0, 2, 2, 3], np.int32), np.array([1, 0, 1], np.int32)
    weights, x = np.array([2, 1, -1], np.float32), random(2, 80)
    out = np.full((3, 80), 9, np.float32)
    products.multiply_sparse(pointers, columns, weights, x, out)
    assert np.allclose(out, [2 * x[1] + x[0], np.zeros(80), -x[1]])


def test_relu_lets_nan_through():
    out = np.array([[np.nan, -1, 2] + [0] * 13], np.float32)
    products.add_bias_relu(out, 0, 1, np.full(16, 0.5, np.float32))
    assert np.isnan(out[0, 0])
    assert out[0, 1:4].tolist() == [0, 2.5, 0.5]


def test_rows_that_do_not_follow_one_another_are_refused():
    with pytest.raises(Exception, match="C-contiguous"):
        products.multiply(random(4, 32)[:, :16], random(16, 16), np.empty((4, 16), np.float32))
