import numpy as np

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Topology, gather_ranges

# A path 0-1-2, then an edge 3-4 that only node 4 receives, then a single node 5.
TOPOLOGY = Topology(np.array([0, 3, 5, 6]), np.array([0, 1, 3, 4, 4, 5, 5]), np.array([1, 0, 2, 1, 3]))
GRAPHS = GraphSet(TOPOLOGY, np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6), np.array([0, 1, 1]))


def test_ranges_are_concatenated():
    assert gather_ranges(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]


def test_graphs_are_taken_in_order_with_repeats():
    taken = GRAPHS.take(np.array([1, 0, 1]))
    assert taken.topology.graph_ptr.tolist() == [0, 2, 5, 7]
    assert taken.topology.row_ptr.tolist() == [0, 0, 1, 2, 4, 5, 5, 6]
    assert taken.topology.columns.tolist() == [0, 3, 2, 4, 3, 5]
    assert taken.features[:, 0].tolist() == [6, 8, 0, 2, 4, 6, 8]
    assert taken.labels.tolist() == [1, 0, 1]


def test_edge_index_is_sender_then_receiver():
    assert Batch.of(GRAPHS).edge_index.tolist() == [[1, 0, 2, 1, 3], [0, 1, 1, 2, 4]]
