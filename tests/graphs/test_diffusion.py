"""The diffused view of graphs equals torch-geometric's GDC where that is right."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import GDC

from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.diffusion import DiffusionOptions, diffuse
from tests.making import packed, receivers

OPTIONS = {
    "ppr": {"alpha": 0.2},
    "heat": {"kind": "heat", "t": 5.0},
    "topk": {"keep": "topk", "k": 4, "scaling": "col"},
    "all": {"keep": "all", "alpha": 0.15},
    "col": {"transition": "col", "scaling": "row", "self_loops": 2.0},
}


def dense(view, graph):
    """Entry (i, j): the weight with which node i sends to node j."""
    part = view.take(np.array([graph]))
    size = part.topology.num_nodes
    matrix = np.zeros((size, size))
    matrix[part.topology.columns, receivers(part.topology)] = part.weights
    return matrix


def by_torch_geometric(topology, graph, o):
    part = topology.take(np.array([graph]))
    edges = torch.from_numpy(np.stack([part.columns, receivers(part)]))
    sparsify = {
        "threshold": {"method": "threshold", "eps": o.eps},
        "topk": {"method": "topk", "k": o.k, "dim": 0},
        "all": {"method": "threshold", "eps": -np.inf},
    }[o.keep]
    theta = {"method": "ppr", "alpha": o.alpha} if o.kind == "ppr" else {"method": "heat", "t": o.t}
    scaling = None if o.scaling == "none" else o.scaling
    gdc = GDC(o.self_loops, o.transition, scaling, theta, sparsify, exact=True)
    found = gdc(Data(edge_index=edges, num_nodes=part.num_nodes))
    matrix = np.zeros((part.num_nodes, part.num_nodes))
    matrix[found.edge_index[0], found.edge_index[1]] = found.edge_attr
    return matrix


@pytest.mark.parametrize("name", OPTIONS)
def test_equals_gdc(name):
    topology = generate(SyntheticOptions(graphs=20), 0).topology
    options = DiffusionOptions(**OPTIONS[name])
    view = diffuse(topology, options)
    for graph in range(20):
        expected = by_torch_geometric(topology, graph, options)
        np.testing.assert_allclose(dense(view, graph), expected, rtol=2e-4, atol=2e-6)


def test_ppr_of_two_nodes():
    # T of the edge with self-loops is 1/2 everywhere, so S = 0.2 (I - 0.4 ones)^-1 = 0.2 I + 0.4 ones.
    view = diffuse(packed((2, [(0, 1)])), DiffusionOptions())
    np.testing.assert_allclose(dense(view, 0), [[0.6, 0.4], [0.4, 0.6]], rtol=1e-6)


def test_heat_is_the_matrix_exponential():
    # T - I has the eigenvalues 0 and -1: exp(t (T - I)) = (1 + e^-t) / 2 on the diagonal.
    view = diffuse(packed((2, [(0, 1)])), DiffusionOptions(kind="heat", t=1.0))
    np.testing.assert_allclose(dense(view, 0)[0], [0.5 + 0.5 * np.exp(-1), 0.5 - 0.5 * np.exp(-1)], rtol=1e-6)


def test_a_mean_degree_keeps_the_largest_entries():
    # GDC itself drops one of two entries that are equal by symmetry, by their last bits.
    topology = generate(SyntheticOptions(graphs=20), 0).topology
    whole = diffuse(topology, DiffusionOptions(keep="all"))
    kept = diffuse(topology, DiffusionOptions(keep="degree", degree=6))
    for graph in range(20):
        every, some = dense(whole, graph), dense(kept, graph)
        assert 6 * len(some) <= np.count_nonzero(some) <= 7 * len(some)
        assert every[some == 0].max() < some[some > 0].min()


def test_a_mean_degree_of_exactly_the_number_of_nodes_keeps_all():
    ring = (64, [(i, (i + 1) % 64) for i in range(64)])
    view = diffuse(packed(ring), DiffusionOptions(keep="degree", degree=64))
    assert view.topology.num_edges == 64 * 64


def test_single_nodes_and_nodes_without_edges():
    view = diffuse(packed((1, []), (3, [(0, 1)]), (1, [])), DiffusionOptions())
    assert view.topology.graph_ptr.tolist() == [0, 1, 4, 5]
    assert [dense(view, 0).tolist(), dense(view, 2).tolist()] == [[[1.0]], [[1.0]]]
    assert dense(view, 1)[2].tolist() == [0.0, 0.0, 1.0]
    no_loops = diffuse(packed((1, []), (1, [])), DiffusionOptions(self_loops=0.0, scaling="sym"))
    assert no_loops.weights.tolist() == [1.0, 1.0]


def test_graphs_are_taken_with_their_weights():
    topology = generate(SyntheticOptions(graphs=10), 0).topology
    view = diffuse(topology, DiffusionOptions())
    alone = diffuse(topology.take(np.array([7, 3])), DiffusionOptions())
    taken = view.take(np.array([7, 3]))
    assert np.array_equal(taken.weights, alone.weights)
    assert np.array_equal(taken.topology.columns, alone.topology.columns)
