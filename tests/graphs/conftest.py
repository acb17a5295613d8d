import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology
from tests.making import clique, packed


@pytest.fixture
def many_kinds():
    """A clique of 4 with a tail, a path, a single node, and a triangle beside a lone node."""
    with_tail, path = [*clique(4)[1], (3, 4), (4, 5)], [(0, 1), (1, 2)]
    topology = packed((6, with_tail), (3, path), (1, []), (4, clique(3)[1]))
    node_row = np.array([0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0])
    rows = np.array([[1, 0, 0.5], [0, 1, -2]], np.float32)
    return GraphSet(topology, rows, node_row, np.array([0, 1, 1, 0]))


@pytest.fixture
def directed():
    """Nodes 0 and 1 see the same nodes, but only node 0 is seen by node 2."""
    topology = Topology(np.array([0, 3, 5]), np.array([0, 1, 2, 3, 3, 4]), np.array([1, 0, 0, 3]))
    rows = np.array([[1], [2], [3]], np.float32)
    return GraphSet(topology, rows, np.array([0, 1, 2, 2, 0]), np.array([0, 1]))
