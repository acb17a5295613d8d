import numpy as np
import pytest

from fedmpi.kernels import vectors


def test_squared_norm():
    values = np.random.default_rng(1).standard_normal(1003).astype(np.float32)
    assert vectors.squared_norm(values) == pytest.approx(np.sum(values.astype(float) ** 2), rel=1e-14)


def test_a_squared_norm_is_summed_in_sixteen_lanes_whatever_its_length():
    for rows in (1, 7, 8, 9, 50):
        values, lanes = (
            np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32),
            np.zeros(16),
        )
        for row in values:
            lanes += row.astype(float) ** 2
        assert vectors.squared_norm(values.ravel()) == sum(lanes.tolist())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 17, 18])
def test_the_norm_of_a_vector_with_one_bad_element_is_not_finite(bad, place):
    values = np.ones(19, np.float32)
    values[place] = bad
    assert not np.isfinite(vectors.squared_norm(values))


def test_the_largest_floats_do_not_overflow():
    assert np.isfinite(vectors.squared_norm(np.full(1000, np.finfo(np.float32).max)))


def test_a_digest_tells_bits_and_places_apart():
    words = np.arange(100, dtype=np.uint32)
    changed, swapped = words.copy(), words.copy()
    changed[40] ^= 1
    swapped[[3, 4]] = words[[4, 3]]
    assert len({int(vectors.digest(each)) for each in (words, changed, swapped, words[:99])}) == 4
    assert vectors.digest(words) == vectors.digest(words.copy())
