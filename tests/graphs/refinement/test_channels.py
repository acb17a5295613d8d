"""Every row of the structure channel stands for its nodes: summed over neighbours as the graphs' own matrices do."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.refinement.channels import channel_batch, channel_levels
from tests.graphs.refinement.test_quotient import dense


@pytest.fixture
def encoded(many_kinds):
    """Encodings that tell a node of degree 0 or 1 from others, and nothing else."""
    degrees = np.diff(many_kinds.topology.row_ptr)
    return replace(many_kinds, structure=np.stack([degrees < 2, degrees > 1], axis=1).astype(np.float32))


def check(found, graphs, nodes, closed):
    """The rows that `nodes` read, by depth, are those of sums over neighbours, normalised and taken again."""
    matrix = closed(graphs.topology)
    rows, expected = found.structure.inputs[:, :-1], graphs.structure
    assert np.all(found.structure.inputs[:, -1] == 1)
    for depth, layer in enumerate(found.structure.layers):
        rows = dense(layer) @ (found.structure.roots[depth][:, None] * rows)
        rows = np.tanh(found.structure.roots[depth + 1][:, None] * rows)
        roots = 1 / np.sqrt(matrix.sum(axis=1))[:, None]
        expected = np.tanh(roots * (matrix @ (roots * expected)))
        assert np.allclose(rows[found.colours[depth]], expected[nodes[depth]])
    graph_of_node = np.repeat(np.arange(graphs.num_graphs), np.diff(graphs.topology.graph_ptr))
    pooling = np.arange(graphs.num_graphs)[:, None] == graph_of_node
    assert np.allclose(dense(found.structure.pooling) @ rows, pooling @ expected)
    assert np.array_equal(found.structure.sizes, np.diff(graphs.topology.graph_ptr))


def check_batch(batch, graphs, closed):
    nodes = batch.rows.members[batch.rows.member_ptr[:-1]]
    check(batch, graphs, [nodes] * len(batch.colours), closed)
    assert batch.sizes == (graphs.num_graphs, graphs.topology.num_nodes, graphs.topology.num_edges)
    first = dense(batch.rows.first) @ batch.rows.inputs
    assert np.allclose(first, (closed(graphs.topology) @ graphs.features)[nodes])


@pytest.mark.parametrize("depth", [1, 3])
def test_rows_of_training(encoded, closed, depth):
    check_batch(channel_batch(encoded, depth), encoded, closed)


def test_taken_graphs_have_their_own_rows_only(encoded, closed):
    whole = channel_batch(encoded, 2)
    for chosen in ([3, 0], [2], [1, 1, 0, 2]):
        graphs = encoded.take(np.array(chosen))
        taken = whole.take(np.array(chosen))
        check_batch(taken, graphs, closed)
        alone = channel_batch(graphs, 2).structure
        assert taken.structure.inputs.shape == alone.inputs.shape
        assert [m.num_rows for m in taken.structure.layers] == [m.num_rows for m in alone.layers]


@pytest.mark.parametrize("depth", [1, 3])
def test_rows_of_evaluation(encoded, closed, depth):
    found = channel_levels(encoded, depth)
    check(found, encoded, found.rows.first, closed)


def test_alike_nodes_of_all_graphs_are_one_row(encoded):
    found = channel_batch(encoded, 1).structure
    assert len(found.inputs) == 5  # degrees 0, 1, 2, 3 and 4
    # Both lone nodes, the triangle's, the ends of path and tail, and the path's middle, the rest of the tail,
    # the clique's node that has it and the clique's others.
    assert found.layers[0].num_rows == 7


def test_where_edges_have_a_direction(directed, closed):
    structure = np.arange(10, dtype=np.float32).reshape(5, 2)
    graphs = replace(directed, structure=structure)
    check_batch(channel_batch(graphs, 2), graphs, closed)
