"""GraphSAGE of one graph: two layers over two neighbours drawn of each node, and back.

The first layer computes every node (rows 0 to n - 1) and the two neighbours drawn of each (rows n + 2 i
and n + 2 i + 1 for node i).
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import add_transposed_times, relu_backward, rows_times, scale_rows
from fedmpi.graphs.streams import Drop, Words, draw_factors, word
from fedmpi.kernels.molecules.arrays import Molecules, Network, Spot, Work

_HALF = np.float32(0.5)


@compiled
def forward(
    graphs: Molecules,
    spot: Spot,
    streams: Words,
    drop: Drop,
    training: np.bool_,
    network: Network,
    work: Work,
) -> None:
    """Set the first columns of `joined` to the nodes' states.

    Parameters
    ----------
    streams : uint64 [*]
        The step's random streams: dropout's, and those of both layers' neighbours.
    """
    count, weights = spot.num_nodes, network.weights
    _draw(graphs, spot, streams, work)
    rows_times(work.inputs, 0, 3 * count, weights.first, work.hidden, 0)
    relu_backward(work.hidden, 3 * count, work.hidden)
    if training:
        behind = spot.all_nodes + 2 * spot.nodes
        draw_factors(streams[0], drop, spot.nodes, count, network.hidden, work.words, work.factors, 0)
        draw_factors(streams[0], drop, behind, 2 * count, network.hidden, work.words, work.factors, count)
        scale_rows(work.hidden, 0, 3 * count, work.factors)
    width = work.hidden.shape[1]
    for i in range(count):
        line, own = work.second[i], work.hidden[i]
        one, other = work.hidden[count + 2 * i], work.hidden[count + 2 * i + 1]
        for j in range(width):
            line[j] = own[j]
            line[width + j] = _HALF * (one[j] + other[j])
    rows_times(work.second, 0, count, weights.second, work.states, 0)
    for i in range(count):
        for j in range(work.states.shape[1]):
            value = work.states[i, j]
            work.joined[i, j] = np.float32(0.0) if value <= 0.0 else value


@compiled
def back(spot: Spot, network: Network, work: Work) -> None:
    """Add the gradients of a graph's two layers, from `nodes_gradient`."""
    count, width = spot.num_nodes, work.hidden.shape[1]
    relu_backward(work.nodes_gradient, count, work.states)
    add_transposed_times(work.second, 0, count, work.nodes_gradient, 0, network.gradients.second)
    rows_times(work.nodes_gradient, 0, count, network.transposed.second, work.second_gradient, 0)
    for i in range(count):
        line, own = work.second_gradient[i], work.hidden_gradient[i]
        one, other = work.hidden_gradient[count + 2 * i], work.hidden_gradient[count + 2 * i + 1]
        for j in range(width):
            own[j] = line[j]
            one[j] = other[j] = _HALF * line[width + j]
    scale_rows(work.hidden_gradient, 0, 3 * count, work.factors)
    relu_backward(work.hidden_gradient, 3 * count, work.hidden)
    add_transposed_times(work.inputs, 0, 3 * count, work.hidden_gradient, 0, network.gradients.first)


@compiled
def _draw(graphs: Molecules, spot: Spot, streams: Words, work: Work) -> None:
    """Set `inputs` to the features of each node asked for, beside the mean of two of its neighbours."""
    first, count, width = spot.first, spot.num_nodes, graphs.features.shape[1]
    for row in range(3 * count):
        node = row
        if row >= count:
            drawn = 2 * spot.nodes + row - count
            node = _neighbour(graphs, first, (row - count) // 2, streams[1], drawn)
        place = spot.nodes + row if row < count else spot.all_nodes + 2 * spot.nodes + row - count
        one = first + _neighbour(graphs, first, node, streams[2], 2 * place)
        other = first + _neighbour(graphs, first, node, streams[2], 2 * place + 1)
        for j in range(width):
            work.inputs[row, j] = graphs.features[first + node, j]
            around = graphs.features[one, j] + graphs.features[other, j]
            work.inputs[row, width + j] = _HALF * around


@compiled
def _neighbour(graphs: Molecules, first: int, node: int, stream: np.uint64, number: int) -> int:
    """Return the neighbour of a graph's node, or the node itself, that a word of a stream chooses."""
    start = np.int64(graphs.pointers[first + node])
    degree = np.int64(graphs.pointers[first + node + 1]) - start
    place = word(stream, np.uint64(number)) % np.uint64(degree)
    return int(graphs.columns[start + np.int64(place)])
