"""Every matrix of a quotient gives what the graphs' own matrices give."""

import numpy as np
import pytest

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.refinement.levels import levels
from fedmpi.graphs.refinement.quotient import quotient


def dense(matrix):
    full = np.zeros((matrix.num_rows, matrix.width))
    for row in range(matrix.num_rows):
        for e in range(matrix.pointers[row], matrix.pointers[row + 1]):
            full[row, matrix.columns[e]] += matrix.weights[e]
    return full


def membership(batch):
    """Return the matrix that sums nodes to classes, [Q, N]."""
    matrix = np.zeros((batch.num_rows, len(batch.members)))
    for row in range(batch.num_rows):
        matrix[row, batch.members[batch.member_ptr[row] : batch.member_ptr[row + 1]]] = 1
    return matrix


def check(batch, graphs, closed):
    """Class sums, first-layer sums, pooling and sizes equal those of the graphs themselves."""
    members = membership(batch)
    assert np.array_equal(batch.node_ptr, graphs.topology.graph_ptr)
    assert batch.num_edges.sum() == graphs.topology.num_edges
    assert np.array_equal(batch.labels, graphs.labels)
    full = closed(graphs.topology)
    assert np.array_equal(dense(batch.closed) @ members, full[batch.members[batch.member_ptr[:-1]]])
    first = dense(batch.first)[batch.first_of] @ batch.inputs
    assert np.allclose(members.T @ first, full @ graphs.features)
    ones = np.repeat(np.arange(graphs.num_graphs), np.diff(graphs.topology.graph_ptr))
    pooling = np.arange(graphs.num_graphs)[:, None] == ones
    assert np.array_equal(dense(batch.pooling) @ members, pooling)


def test_twins_are_one_row(many_kinds, closed):
    batch = quotient(many_kinds)
    # Clique nodes 0, 1, 2 (3 also sees the tail), and the triangle's three nodes.
    assert batch.num_rows == 14 - 2 - 2
    assert batch.largest_class == 3
    check(batch, many_kinds, closed)


def test_taken_graphs_are_those_of_their_own_quotient(many_kinds, closed):
    for chosen in ([3, 0], [2], [1, 1, 0, 2]):
        taken = quotient(many_kinds).take(np.array(chosen))
        check(taken, many_kinds.take(np.array(chosen)), closed)


def test_where_edges_have_a_direction_no_class_counts_too_much(directed, closed):
    batch = quotient(directed)
    assert batch.num_rows == 5
    check(batch, directed, closed)


def test_a_node_that_sees_itself_or_another_twice_counts_both(closed):
    # Node 0 has a loop, and is seen twice by node 1; both see the same nodes as node 2 does.
    topology = Topology(np.array([0, 3]), np.array([0, 3, 6, 8]), np.array([0, 1, 2, 0, 0, 2, 0, 1]))
    graphs = GraphSet(topology, np.array([[1], [5]], np.float32), np.array([0, 1, 1]), np.array([0]))
    batch = quotient(graphs)
    assert batch.num_rows == 3
    check(batch, graphs, closed)


def test_graphs_without_nodes(closed):
    topology = Topology(np.array([0, 0, 2, 2]), np.array([0, 1, 2]), np.array([1, 0]))
    graphs = GraphSet(topology, np.ones((1, 1), np.float32), np.zeros(2, int), np.array([0, 1, 0]))
    check(quotient(graphs), graphs, closed)
    check(quotient(graphs).take(np.array([2, 0])), graphs.take(np.array([2, 0])), closed)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_colours_give_what_nodes_give_without_dropout(many_kinds, closed, depth):
    found = levels(many_kinds, depth)
    x, full = found.inputs.astype(float), many_kinds.features.astype(float)
    for matrix in found.layers:
        x = np.tanh(dense(matrix) @ x)
        full = np.tanh(closed(many_kinds.topology) @ full)
    graph = np.repeat(np.arange(4), np.diff(many_kinds.topology.graph_ptr))
    pooled = (np.arange(4)[:, None] == graph) @ full
    assert np.allclose(dense(found.pooling) @ x, pooled)


def test_colours_are_as_few_as_refinement_gives(many_kinds):
    constant = type(many_kinds)(
        many_kinds.topology, np.ones((1, 1), np.float32), np.zeros(14, int), many_kinds.labels
    )
    # By degree: 3 (three nodes), 4, 2 (five nodes: tail, path, triangle), 1 (three), 0 (two).
    assert levels(constant, 1).layers[0].num_rows == 5


def test_a_transpose():
    matrix = Csr(
        np.array([0, 2, 2, 3], np.int32), np.array([0, 2, 2], np.int32), np.array([1, 2, 3], np.float32), 4
    )
    assert np.array_equal(dense(matrix.transposed), dense(matrix).T)
