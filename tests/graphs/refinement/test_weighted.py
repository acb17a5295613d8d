"""Rows of weighted sums: as few as there are, and the sums themselves, against matrices written out."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.refinement.weighted import (
    attention_levels,
    attention_quotient,
    mean_levels,
    mean_quotient,
    message_levels,
    message_quotient,
    normalised_levels,
    normalised_quotient,
)


def dense(matrix):
    found = np.zeros((matrix.num_rows, matrix.width))
    for row in range(matrix.num_rows):
        for entry in range(matrix.pointers[row], matrix.pointers[row + 1]):
            found[row, matrix.columns[entry]] += matrix.weights[entry]
    return found


@pytest.fixture
def star():
    """A node of feature 0 with three neighbours of feature 1; and a triangle of feature 1."""
    columns = [1, 2, 3, 0, 0, 0, 5, 6, 4, 6, 4, 5]
    topology = Topology(np.array([0, 4, 7]), np.array([0, 3, 4, 5, 6, 8, 10, 12]), np.array(columns))
    node_row = np.array([0, 1, 1, 1, 1, 1, 1])
    return GraphSet(topology, np.eye(2, dtype=np.float32), node_row, np.zeros(2, np.int64))


def test_normalised_rows(star):
    found = normalised_quotient(star)
    assert np.diff(found.member_ptr).tolist() == [1, 1, 1, 1, 3]  # the triangle's nodes are twins
    edge = 1 / np.sqrt(4 * 2)
    assert np.allclose(dense(found.closed)[0], [1 / 4, edge, edge, edge, 0])
    assert np.allclose(dense(found.closed)[4], [0, 0, 0, 0, 1 / 3])  # of each of the three
    assert np.allclose(dense(found.first), [[1 / 4, 3 * edge], [edge, 1 / 2], [0, 1]])
    assert found.first_of.tolist() == [0, 1, 1, 1, 2]


def test_normalised_levels(star):
    found = normalised_levels(star, 2)
    edge = 1 / np.sqrt(4 * 2)
    assert np.allclose(dense(found.layers[1]), [[1 / 4, 3 * edge, 0], [edge, 1 / 2, 0], [0, 0, 1]])
    assert dense(found.pooling).tolist() == [[1, 3, 0], [0, 0, 3]]


def test_means_beside_own_rows(star):
    found = mean_quotient(star)
    assert found.parts == 2
    means, own = np.split(dense(found.closed), 2)
    assert np.allclose(means[0], [0, 1 / 3, 1 / 3, 1 / 3, 0, 0, 0])
    assert np.allclose(means[4], [0, 0, 0, 0, 0, 1 / 2, 1 / 2])
    assert np.array_equal(own, np.eye(7))
    means, own = np.split(dense(found.first), 2)  # the star's middle, its ends, the triangle
    assert means.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert own.tolist() == [[1, 0], [0, 1], [0, 1]]
    taken = found.take(np.array([1, 1]))
    assert np.split(dense(taken.closed), 2)[0].shape == (6, 6)
    assert [dense(matrix).shape for matrix in mean_levels(star, 2).layers] == [(6, 2), (6, 3)]


def test_neighbourhoods_for_attention(star):
    found = attention_quotient(star)
    near, own = np.split(dense(found.closed), 2)
    assert near[0].tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert near[4].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert np.array_equal(own, np.eye(7))
    near, own = np.split(dense(found.first), 2)  # the star's middle, its ends, the triangle
    assert near.tolist() == [[1, 3], [1, 1], [0, 3]]
    assert own.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert np.split(dense(attention_levels(star, 2).layers[1]), 2)[0].tolist() == [
        [1, 3, 0],
        [1, 1, 0],
        [0, 0, 3],
    ]


def test_messages_by_kind_of_edge(star):
    plain = message_quotient(star)
    assert plain.bonds.shape == (1, 0)
    near, _ = np.split(dense(plain.first), 2)
    assert near.tolist() == [[0, 3], [1, 0], [0, 2]]
    # The star's first edge is of kind 1 in both directions, all others are of kind 0.
    edges = np.zeros((12, 9), np.uint8)
    edges[[0, 3], 8] = 1
    found = message_quotient(replace(star, edges=edges))
    assert found.bonds.tolist() == [[0] * 9, [0] * 8 + [1]]
    assert found.first_of.tolist() == [0, 1, 2, 2, 3, 3, 3]
    first = found.first
    entries = [list(range(*first.pointers[row : row + 2])) for row in range(4)]
    seen = [[(int(first.columns[e]), divmod(int(first.weights[e]), 2)) for e in row] for row in entries]
    # The middle sees two ends by kind 0 and one by kind 1; row 1 feature, then number and kind.
    assert seen == [[(1, (2, 0)), (1, (1, 1))], [(0, (1, 1))], [(0, (1, 0))], [(1, (2, 0))]]
    assert len(message_levels(replace(star, edges=edges), 2).first[1]) == 4


def test_many_features_and_a_large_hub():
    """More pairs of feature and degree than 32 bits count, had each its own number."""
    size = 70_000
    hub = np.arange(1, 40_001)
    row_ptr = np.concatenate([[0, 40_000], 40_000 + np.minimum(np.arange(1, size), 40_000)])
    topology = Topology(np.array([0, size]), row_ptr, np.concatenate([hub, np.zeros(40_000, np.int64)]))
    rows = np.zeros((size, 1), np.float32)
    graphs = GraphSet(topology, rows, np.arange(size), np.zeros(1, np.int64))
    first = normalised_quotient(graphs).first
    assert first.columns[first.pointers[1] : first.pointers[2]].tolist() == [0, 1]
    assert np.isfinite(first.weights).all()
