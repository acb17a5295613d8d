import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedmpi.comm.reductions import ZERO_EXPONENT, Exact, Fixed32, weighted_exponent

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)


def mean_of(deltas, weights, order):
    exponent = max(weighted_exponent(d, w) for d, w in zip(deltas, weights, strict=True))
    reduction = Exact(len(deltas), exponent, sum(weights))
    total = np.zeros(len(deltas[0]), np.int64)
    for place in order:
        total += reduction.encode(deltas[place], weights[place])
    return reduction.decode(total)


@settings(deadline=None)
@given(
    st.lists(st.lists(float32s, min_size=3, max_size=3), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_exact_sums_do_not_depend_on_order_and_are_right(rows, random):
    deltas = [np.array(row, np.float32) for row in rows]
    weights = [random.randint(1, 10_000) for _ in rows]
    order = list(range(len(rows)))
    first = mean_of(deltas, weights, order)
    random.shuffle(order)
    assert np.array_equal(first, mean_of(deltas, weights, order))
    wanted = sum(d.astype(np.longdouble) * w for d, w in zip(deltas, weights, strict=True)) / sum(weights)
    largest = max(float(np.max(np.abs(d))) * w for d, w in zip(deltas, weights, strict=True))
    assert np.all(np.abs(first - wanted) <= largest * len(rows) * 2.0**-50)


def test_exact_does_not_overflow_at_the_largest_values():
    largest = np.array([np.finfo(np.float32).max], np.float32)
    weights = [2**20] * 1000
    assert mean_of([largest] * 1000, weights, range(1000))[0] == np.float64(largest[0])


def test_all_zero_deltas_have_mean_zero():
    assert weighted_exponent(np.zeros(2, np.float32), 5) == ZERO_EXPONENT
    assert mean_of([np.zeros(2, np.float32)] * 2, [5, 7], [0, 1]).tolist() == [0.0, 0.0]


def test_a_delta_beyond_its_exponent_is_our_own_mistake():
    with pytest.raises(AssertionError):
        Exact(1, 0, 1).encode(np.array([8.0], np.float32), 1)
    with pytest.raises(AssertionError):
        Exact(64, 0, 64).encode(np.array([60.0], np.float32), 1)


def test_fixed32_clips_and_does_not_depend_on_order():
    reduction = Fixed32(total_weight=4, clip=1.0)
    parts = [
        reduction.encode(np.array([0.5, 9.0], np.float32), 3),
        reduction.encode(np.array([-0.5, 0.25], np.float32), 1),
    ]
    assert parts[0].dtype == np.int32
    assert reduction.decode(parts[0] + parts[1]).tolist() == [0.25, 0.8125]
