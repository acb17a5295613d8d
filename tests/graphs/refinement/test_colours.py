"""Rows of nodes alike, on graphs small enough to count them."""

import numpy as np

from fedmpi.graphs.diffusion import WeightedTopology
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.colours import ColouredGraphs
from tests.making import packed

PATHS = packed((3, [(0, 1), (1, 2)]), (1, []), (4, [(0, 1), (1, 2), (2, 3)]))
"""A path of three nodes, a node alone, a path of four."""

GRAPHS = GraphSet(PATHS, np.ones((1, 2), np.float32), np.zeros(8, int), np.zeros(3, int))


def test_nodes_as_many_steps_from_an_end_are_one_row():
    rows = ColouredGraphs(GRAPHS, None, 2, by_node=True).take(None)
    first, second = rows.layers
    assert first.counts.tolist() == [4, 3, 1]  # ends, inner nodes, the node alone
    assert rows.inputs[:, :2].tolist() == [[2, 2], [3, 3], [1, 1]]
    assert not rows.inputs[:, 2:].any()
    # the middle of three nodes is no longer as the inner of four
    assert second.counts.tolist() == [4, 1, 1, 2]
    entries = [second.sums.columns[a:b].tolist() for a, b in ((0, 2), (2, 5), (5, 6))]
    assert entries == [[1, 0], [0, 0, 1], [2]]
    assert second.pooling.columns.tolist() == [0, 1, 0, 2, 0, 3, 3, 0]
    assert rows.node_classes.class_of_node.tolist() == second.pooling.columns.tolist()
    assert [each.tolist() for each in rows.node_classes.rows] == [[0, 1, 2, 1], [0, 1, 2, 3]]
    assert (rows.num_graphs, rows.num_nodes, rows.num_edges, rows.weighted) == (3, 8, 10, False)


def test_a_batch_numbers_what_occurs_in_it():
    rows = ColouredGraphs(GRAPHS, None, 2, by_node=True).take(np.array([2, 1]))
    assert [layer.counts.tolist() for layer in rows.layers] == [[2, 2, 1], [2, 2, 1]]
    assert rows.node_classes.first.tolist() == [4, 5, 3]
    assert rows.node_classes.pooling.pointers.tolist() == [0, 4, 5]
    assert rows.num_edges == 6


def test_weights_tell_nodes_apart():
    weights = np.ones(10, np.float32)
    weights[0] = 0.5  # what node 0 receives
    rows = ColouredGraphs(GRAPHS, WeightedTopology(PATHS, weights), 1, by_node=False).take(None)
    assert rows.layers[0].counts.tolist() == [1, 3, 3, 1]
    assert rows.inputs[:, 0].tolist() == [1.5, 3, 2, 1]
    assert rows.weighted and rows.node_classes is None


def test_nodes_that_were_apart_and_are_alike_again_have_vectors_of_their_own():
    # A path of four with features 1, 2, 1, 2: its inner nodes sum to 4 and 5, then both to 12.
    path = packed((4, [(0, 1), (1, 2), (2, 3)]))
    graphs = GraphSet(path, np.array([[1.0], [2.0]], np.float32), np.array([0, 1, 0, 1]), np.zeros(1, int))
    rows = ColouredGraphs(graphs, None, 2, by_node=True).take(None)
    assert rows.inputs[:, 0].tolist() == [3, 4, 5]
    assert [len(layer.counts) for layer in rows.layers] == [3, 3]
    assert rows.layers[1].pooling.columns.tolist() == [0, 1, 1, 2]
    assert rows.node_classes.class_of_node.tolist() == [0, 1, 2, 3]
