"""Graphs with hidden nodes, and with generated ones."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.mended import Generated, impaired, mended, with_leaves
from fedmpi.graphs.packed import GraphSet, Topology, sparse

# A square 0-1-2-3 with a tail 3-4.
TOPOLOGY = Topology(np.array([0, 5]), np.array([0, 2, 4, 6, 9, 10]), np.array([1, 3, 0, 2, 1, 3, 0, 2, 4, 3]))
FEATURES = np.arange(10, dtype=np.float32).reshape(5, 2)
PART = GraphSet(TOPOLOGY, FEATURES, np.arange(5), np.array([1, 0]), places=np.array([0, 3]))


def test_hidden_nodes_take_their_edges_with_them():
    found = impaired(TOPOLOGY, np.array([1, 3]))
    assert found.kept.tolist() == [0, 2, 4]
    assert found.topology.num_edges == 0
    assert found.missing.tolist() == [2, 2, 1]
    assert found.hidden.tolist() == [1, 3, 1, 3, 3]
    one = impaired(TOPOLOGY, np.array([4]))
    assert one.topology.row_ptr.tolist() == [0, 2, 4, 6, 8]
    assert one.topology.columns.tolist() == [1, 3, 0, 2, 1, 3, 0, 2]
    assert (one.missing.tolist(), one.hidden.tolist()) == ([0, 0, 0, 1], [4])


def test_a_generated_node_has_one_edge_in_each_direction():
    found = with_leaves(TOPOLOGY, np.array([0, 0, 4]))
    assert found.graph_ptr.tolist() == [0, 8]
    rows = [found.columns[a:b].tolist() for a, b in zip(found.row_ptr[:-1], found.row_ptr[1:], strict=True)]
    assert rows == [[1, 3, 5, 6], [0, 2], [1, 3], [0, 2, 4], [3, 7], [0], [0], [4]]


@pytest.mark.parametrize("table", [FEATURES, sparse(FEATURES)], ids=["dense", "sparse"])
def test_a_mended_part_has_the_examples_that_it_had(table):
    generated = Generated(np.array([1, 3]), np.array([[0.5, 0], [-1, 2]], np.float32))
    found = mended(replace(PART, feature_rows=table), generated)
    assert found.features.tolist() == [*FEATURES.tolist(), [0.5, 0], [-1, 2]]
    assert found.labels.tolist() == [1, 0]
    assert found.places.tolist() == [0, 3]
    assert found.topology.num_edges == TOPOLOGY.num_edges + 4
    assert type(found.feature_rows) is type(table)


def test_edges_of_generated_nodes_have_attributes_of_zero():
    part = replace(PART, edges=np.arange(1, 11, dtype=np.float32)[:, None])
    found = mended(part, Generated(np.array([1, 3]), np.zeros((2, 2), np.float32)))
    assert found.topology.columns.tolist() == [1, 3, 0, 2, 5, 1, 3, 0, 2, 4, 6, 3, 1, 3]
    assert found.edges.ravel().tolist() == [1, 2, 3, 4, 0, 5, 6, 7, 8, 9, 0, 10, 0, 0]
