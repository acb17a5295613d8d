"""The loops of the structure channel."""

import numpy as np

from fedmpi.kernels.structure_loops import gather


def test_tanh_is_within_five_units_in_the_last_place_and_keeps_nan():
    odd = [np.inf, -np.inf, np.nan, 0]
    x = np.concatenate([np.linspace(-12, 12, 100_001), np.logspace(-30, 1, 4_999), odd])
    x = np.resize(x, (6563, 16)).astype(np.float32)
    rows = np.arange(len(x) + 1, dtype=np.int32)
    ones, bias = np.ones(len(x), np.float32), np.zeros(16, np.float32)
    found, given = np.empty_like(x), np.empty_like(x)
    gather(rows, rows[:-1], ones, x, x, ones, bias, found, given)
    expected = np.tanh(x.astype(np.float64))
    off = np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert np.array_equal(np.isnan(found), np.isnan(x))
    assert np.nanmax(off) <= 5
    assert np.array_equal(given, x, equal_nan=True)
