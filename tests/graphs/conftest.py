import numpy as np
import pytest

from fedmpi.graphs.packed import GraphSet, Topology, pointers


def graph_set(graphs, feature_rows, node_row, labels):
    """Return packed graphs; each is a number of nodes and a list of edges (sender, receiver)."""
    sizes = [nodes for nodes, _ in graphs]
    starts = pointers(sizes)
    edges = [(s + a, s + b) for s, (_, links) in zip(starts, graphs, strict=False) for a, b in links]
    order = sorted(edges, key=lambda edge: (edge[1], edge[0]))
    degrees = np.bincount([b for _, b in order], minlength=starts[-1]) if order else np.zeros(starts[-1], int)
    topology = Topology(starts, pointers(degrees), np.array([a for a, _ in order], np.int64))
    return GraphSet(topology, np.array(feature_rows, np.float32), np.array(node_row), np.array(labels))


def both_ways(edges):
    return [*edges, *[(b, a) for a, b in edges]]


def clique(size):
    return [(a, b) for a in range(size) for b in range(size) if a != b]


@pytest.fixture
def many_kinds():
    """A clique of 4 with a tail, a path, a single node, and a triangle beside a lone node."""
    graphs = [
        (6, clique(4) + both_ways([(3, 4), (4, 5)])),
        (3, both_ways([(0, 1), (1, 2)])),
        (1, []),
        (4, clique(3)),
    ]
    node_row = [0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0]
    return graph_set(graphs, [[1, 0, 0.5], [0, 1, -2]], node_row, [0, 1, 1, 0])


@pytest.fixture
def directed():
    """Nodes 0 and 1 see the same nodes, but only node 0 is seen by node 2."""
    graphs = [(3, [(0, 1), (1, 0), (0, 2)]), (2, [(0, 1)])]
    return graph_set(graphs, [[1], [2], [3]], [0, 1, 2, 2, 0], [0, 1])
