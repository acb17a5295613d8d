"""As few rows of the structure channel as there are kinds of nodes; tests/kernels/test_networks.py has their sums."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.graphs.refinement.channels import channel_batch


@pytest.fixture
def encoded(many_kinds):
    """Encodings that tell a node of degree 0 or 1 from others, and nothing else."""
    degrees = np.diff(many_kinds.topology.row_ptr)
    return replace(many_kinds, structure=np.stack([degrees < 2, degrees > 1], axis=1).astype(np.float32))


def test_taken_graphs_have_their_own_rows_only(encoded):
    whole = channel_batch(encoded, 2)
    for chosen in ([3, 0], [2], [1, 1, 0, 2]):
        taken = whole.take(np.array(chosen)).structure
        alone = channel_batch(encoded.take(np.array(chosen)), 2).structure
        assert taken.inputs.shape == alone.inputs.shape
        assert [m.num_rows for m in taken.layers] == [m.num_rows for m in alone.layers]


def test_alike_nodes_of_all_graphs_are_one_row(encoded):
    found = channel_batch(encoded, 1).structure
    assert len(found.inputs) == 5  # degrees 0, 1, 2, 3 and 4
    # Both lone nodes, the triangle's, the ends of path and tail, and the path's middle, the rest of the tail,
    # the clique's node that has it and the clique's others.
    assert found.layers[0].num_rows == 7
