"""As few rows as there are kinds of nodes; tests/kernels/test_networks.py has what they give."""

from dataclasses import replace

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.refinement.levels import levels
from fedmpi.graphs.refinement.quotient import quotient
from tests.making import dense


def test_twins_are_one_row_and_only_where_all_see_them_alike(many_kinds, directed):
    # Clique nodes 0, 1, 2 (3 also sees the tail), and the triangle's three nodes.
    batch = quotient(many_kinds)
    assert (batch.num_rows, batch.largest_class) == (14 - 2 - 2, 3)
    assert batch.labels.tolist() == many_kinds.labels.tolist()
    assert batch.num_edges.sum() == many_kinds.topology.num_edges
    assert quotient(directed).num_rows == 5


def test_a_node_that_sees_itself_or_another_twice_has_no_twin():
    # Node 0 has a loop, and is seen twice by node 1; both see the same nodes as node 2 does.
    topology = Topology(np.array([0, 3]), np.array([0, 3, 6, 8]), np.array([0, 1, 2, 0, 0, 2, 0, 1]))
    graphs = GraphSet(topology, np.array([[1], [5]], np.float32), np.array([0, 1, 1]), np.array([0]))
    assert quotient(graphs).num_rows == 3


def test_colours_are_as_few_as_refinement_gives(many_kinds):
    constant = replace(many_kinds, feature_rows=np.ones((1, 1), np.float32), node_row=np.zeros(14, int))
    # By degree: 3 (three nodes), 4, 2 (five nodes: tail, path, triangle), 1 (three), 0 (two).
    assert levels(constant, 1).layers[0].num_rows == 5


def test_a_transpose():
    pointers, columns = np.array([0, 2, 2, 3], np.int32), np.array([0, 2, 2], np.int32)
    matrix = Csr(pointers, columns, np.array([1, 2, 3], np.float32), 4)
    assert np.array_equal(dense(matrix.transposed), dense(matrix).T)
