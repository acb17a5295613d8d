import numpy as np
import pytest

from fedmpi.graphs import encodings
from fedmpi.graphs.encodings import structure_encoding
from tests.making import packed

PATH = (3, [(0, 1), (1, 2)])
TRIANGLE = (3, [(0, 1), (1, 2), (0, 2)])
LONELY = (2, [])


def test_returns_and_degrees_of_small_graphs_by_hand():
    found = structure_encoding(packed(PATH, TRIANGLE, LONELY), walks=3, degrees=2)
    ends, middle = [0.0, 0.5, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0]
    corner = [0.0, 0.5, 0.25, 0.0, 1.0]
    alone = [0.0, 0.0, 0.0, 1.0, 0.0]  # degree 0 is counted with degree 1
    expected = [ends, middle, ends, corner, corner, corner, alone, alone]
    assert found.tolist() == expected
    assert found.dtype == np.float32


def random_graphs(rng):
    graphs = []
    for nodes in (5, 80, 130, 200, 17, 90):
        pairs = {tuple(sorted(rng.integers(0, nodes, 2).tolist())) for _ in range(3 * nodes)}
        graphs.append((nodes, [pair for pair in pairs if pair[0] != pair[1]]))
    return graphs


@pytest.mark.parametrize("cells", [100, 3_000, 1_000_000])
def test_equals_powers_of_each_graphs_matrix(monkeypatch, cells):
    monkeypatch.setattr(encodings, "_CELLS", cells)
    graphs = random_graphs(np.random.default_rng(3))
    found = structure_encoding(packed(*graphs), walks=16, degrees=16)
    start = 0
    for nodes, edges in graphs:
        matrix = np.zeros((nodes, nodes))
        for a, b in edges:
            matrix[a, b] = matrix[b, a] = 1.0
        step = matrix / np.maximum(matrix.sum(axis=0), 1)
        power = np.eye(nodes)
        for k in range(16):
            power = power @ step
            assert found[start : start + nodes, k] == pytest.approx(np.diag(power), abs=1e-6)
        start += nodes
    assert (found[:, 16:].sum(axis=1) == 1).all()


def test_graphs_without_nodes_make_no_rows(monkeypatch):
    monkeypatch.setattr(encodings, "_CELLS", 1)  # so that they are a block of their own
    pair = structure_encoding(packed((2, [(0, 1)])), walks=2, degrees=2)
    assert structure_encoding(packed((0, []), (2, [(0, 1)])), walks=2, degrees=2).tolist() == pair.tolist()
