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


def test_an_element_does_not_depend_on_the_other_rows():
    a, b = random(70, 64), random(64, 80)
    together, alone = np.empty((70, 80), np.float32), np.empty((1, 80), np.float32)
    products.multiply(a, b, together)
    for row in (0, 3, 68, 69):
        products.multiply(a[row : row + 1], b, alone)
        assert np.array_equal(alone[0], together[row])


def test_rows_that_do_not_follow_one_another_are_refused():
    with pytest.raises(Exception, match="C-contiguous"):
        products.multiply(random(4, 32)[:, :16], random(16, 16), np.empty((4, 16), np.float32))
