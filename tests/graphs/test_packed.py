import numpy as np
import torch

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


def test_products_and_their_gradients_on_a_directed_graph():
    batch = Batch.of(GRAPHS)
    matrix = np.eye(6)
    for receiver in range(6):
        for sender in TOPOLOGY.columns[TOPOLOGY.row_ptr[receiver] : TOPOLOGY.row_ptr[receiver + 1]]:
            matrix[receiver, sender] += 1
    x = batch.x.clone().requires_grad_()
    summed = batch.sum_neighbourhood(x)
    assert np.array_equal(summed.detach().numpy(), matrix @ GRAPHS.features)
    weights = torch.arange(12.0).view(6, 2)
    (summed * weights).sum().backward()
    assert np.array_equal(x.grad.numpy(), matrix.T @ weights.numpy())


def test_pooling_and_its_gradient():
    batch = Batch.of(GRAPHS)
    x = batch.x.clone().requires_grad_()
    pooled = batch.sum_graphs(x)
    assert pooled.tolist() == [[6, 9], [14, 16], [10, 11]]
    (pooled * torch.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert x.grad[:, 0].tolist() == [1, 1, 1, 2, 2, 3]


def test_edge_index_is_sender_then_receiver():
    assert Batch.of(GRAPHS).edge_index.tolist() == [[1, 0, 2, 1, 3], [0, 1, 1, 2, 4]]
