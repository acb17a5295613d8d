"""Dropout of classes of nodes: the masks of `keep_bits`, counted, whatever the width of a row."""

from itertools import pairwise

import numpy as np
import pytest

from fedmpi.graphs.products import padded
from fedmpi.graphs.streams import Drop
from fedmpi.kernels.dropout_loops import drop, dropout_backward
from fedmpi.models.dropout import reading
from fedmpi.seeds import keep_bits

POINTERS, MEMBERS = (
    np.array([0, 2, 3, 100], np.int32),
    np.random.default_rng(1).permutation(100).astype(np.int32),
)
ROW_OF = np.array([1, 1, 0], np.int32)


@pytest.mark.parametrize("hidden", [20, 32, 64, 96, 128])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.3, 0.5])
def test_masks_are_counted_and_applied(hidden, share):
    stream, width, how = 2**63 + 5, padded(hidden), Drop(*reading(share), np.float32(1 / (1 - share)))
    masks = keep_bits(stream, 100 * hidden, share).reshape(100, hidden)
    counts = [masks[MEMBERS[a:b]].sum(axis=0) for a, b in pairwise(POINTERS)]
    x = np.zeros((2, width), np.float32)
    x[:, :hidden] = np.arange(1, hidden + 1)
    kept, out = np.empty((3, width), np.uint8), np.empty((3, width), np.float32)
    streams = np.array([7, stream], np.uint64)
    drop(streams, 1, how, POINTERS, MEMBERS, hidden, x, ROW_OF, kept, out)
    assert kept[:, :hidden].tolist() == [each.tolist() for each in counts]
    np.testing.assert_allclose(
        out[:, :hidden], x[ROW_OF, :hidden] * np.array(counts) / (1 - share), rtol=1e-6
    )
    assert not out[:, hidden:].any()


@pytest.mark.parametrize(
    ("row_of", "expected"), [([1, 1, 0], [16.0, 2.0 + 24.0]), ([2, 0, 1], [24.0, 16.0, 0.0])]
)
def test_gradients_of_a_rows_classes_are_added_where_it_is_active(row_of, expected):
    own, ones = np.arange(4, dtype=np.int32), np.ones(3, np.float32)
    upstream = np.array([[1.0], [4.0], [8.0]], np.float32).repeat(16, axis=1)
    kept = np.array([[1], [3], [1]], np.uint8).repeat(16, axis=1)
    x = np.ones((len(expected), 16), np.float32)
    x[2:] = 0
    out = np.full_like(x, 5)
    dropout_backward(own, own[:3], ones, upstream, np.array(row_of, np.int32), kept, np.float32(2), x, out)
    assert out[:, 0].tolist() == expected
