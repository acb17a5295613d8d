"""Rows of weighted sums: as few as there are; tests/kernels/test_networks.py has the sums themselves."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.refinement import weighted
from tests.making import dense, packed


@pytest.fixture
def star():
    """A node of feature 0 with three neighbours of feature 1; and a triangle of feature 1."""
    topology = packed((4, [(0, 1), (0, 2), (0, 3)]), (3, [(0, 1), (0, 2), (1, 2)]))
    node_row = np.array([0, 1, 1, 1, 1, 1, 1])
    return GraphSet(topology, np.eye(2, dtype=np.float32), node_row, np.zeros(2, np.int64))


def test_normalised_rows(star):
    found = weighted.normalised_quotient(star)
    assert np.diff(found.member_ptr).tolist() == [1, 1, 1, 1, 3]  # the triangle's nodes are twins
    edge = 1 / np.sqrt(4 * 2)
    assert np.allclose(dense(found.first), [[1 / 4, 3 * edge], [edge, 1 / 2], [0, 1]])
    assert found.first_of.tolist() == [0, 1, 1, 1, 2]


def test_rows_of_levels(star):
    for levels in (weighted.normalised_levels, weighted.mean_levels, weighted.attention_levels):
        assert levels(star, 2).layers[1].width == 3  # the star's middle, its ends, the triangle


def test_messages_by_kind_of_edge(star):
    plain = weighted.message_quotient(star)
    assert plain.bonds.shape == (1, 0)
    near, _ = np.split(dense(plain.first), 2)
    assert near.tolist() == [[0, 3], [1, 0], [0, 2]]
    # The star's first edge is of kind 1 in both directions, all others are of kind 0.
    edges = np.zeros((12, 9), np.uint8)
    edges[[0, 3], 8] = 1
    found = weighted.message_quotient(replace(star, edges=edges))
    assert found.bonds.tolist() == [[0] * 9, [0] * 8 + [1]]
    assert found.first_of.tolist() == [0, 1, 2, 2, 3, 3, 3]
    first = found.first
    entries = [list(range(*first.pointers[row : row + 2])) for row in range(4)]
    seen = [[(int(first.columns[e]), divmod(int(first.weights[e]), 2)) for e in row] for row in entries]
    # The middle sees two ends by kind 0 and one by kind 1; row 1 feature, then number and kind.
    assert seen == [[(1, (2, 0)), (1, (1, 1))], [(0, (1, 1))], [(0, (1, 0))], [(1, (2, 0))]]
    assert len(weighted.message_levels(replace(star, edges=edges), 2).first[1]) == 4


def test_many_features_and_a_large_hub():
    """More pairs of feature and degree than 32 bits count, had each its own number."""
    size = 70_000
    hub = np.arange(1, 40_001)
    row_ptr = np.concatenate([[0, 40_000], 40_000 + np.minimum(np.arange(1, size), 40_000)])
    topology = Topology(np.array([0, size]), row_ptr, np.concatenate([hub, np.zeros(40_000, np.int64)]))
    rows = np.zeros((size, 1), np.float32)
    graphs = GraphSet(topology, rows, np.arange(size), np.zeros(1, np.int64))
    first = weighted.normalised_quotient(graphs).first
    assert first.columns[first.pointers[1] : first.pointers[2]].tolist() == [0, 1]
    assert np.isfinite(first.weights).all()
