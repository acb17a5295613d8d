"""The readout that the three models end in, and back: one graph at a time."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import (
    add_bias,
    add_bias_relu,
    add_column_sums,
    add_transposed_times,
    relu_backward,
    rows_times,
)
from fedmpi.kernels.molecules.arrays import Molecules, Network, Work


@compiled
def pool(graphs: Molecules, first: int, count: int, network: Network, work: Work) -> None:
    """Set `pooled` to the mean over a graph's nodes of the readout's first two layers.

    Parameters
    ----------
    graphs : Molecules
    first, count : int
        The graph's first node, and how many it has.
    network : Network
    work : Work
        `joined` has the nodes' states; their features are filled in here.
    """
    weights, features = network.weights, graphs.features
    states = work.joined.shape[1] - features.shape[1]
    for i in range(count):
        for j in range(features.shape[1]):
            work.joined[i, states + j] = features[first + i, j]
    rows_times(work.joined, 0, count, weights.inner, work.inner, 0)
    add_bias_relu(work.inner, 0, count, weights.inner_bias)
    rows_times(work.inner, 0, count, weights.outer, work.outer, 0)
    add_bias_relu(work.outer, 0, count, weights.outer_bias)
    work.pooled[:] = np.float32(0.0)
    add_column_sums(work.outer, 0, count, work.pooled[0])
    share = np.float32(1.0) / np.float32(count)
    for j in range(work.pooled.shape[1]):
        work.pooled[0, j] *= share


@compiled
def read_out(network: Network, work: Work) -> None:
    """Set `logits` to the last layer of what is `pooled`."""
    rows_times(work.pooled, 0, 1, network.weights.last, work.logits, 0)
    add_bias(work.logits, 0, 1, network.weights.last_bias)


@compiled
def read_out_back(count: int, network: Network, work: Work) -> None:
    """Add the readout's gradients of a graph, and set `nodes_gradient` to that of the states."""
    transposed, gradients = network.transposed, network.gradients
    add_transposed_times(work.pooled, 0, 1, work.logits_gradient, 0, gradients.last)
    add_column_sums(work.logits_gradient, 0, 1, gradients.last_bias)
    rows_times(work.logits_gradient, 0, 1, transposed.last, work.pooled_gradient, 0)
    share = np.float32(1.0) / np.float32(count)
    for j in range(work.pooled_gradient.shape[1]):
        work.pooled_gradient[0, j] *= share
    above = work.pooled_gradient[0]
    for i in range(count):
        line, active = work.outer_gradient[i], work.outer[i]
        for j in range(len(line)):
            line[j] = np.float32(0.0) if active[j] <= 0.0 else above[j]
    add_transposed_times(work.inner, 0, count, work.outer_gradient, 0, gradients.outer)
    add_column_sums(work.outer_gradient, 0, count, gradients.outer_bias)
    rows_times(work.outer_gradient, 0, count, transposed.outer, work.inner_gradient, 0)
    relu_backward(work.inner_gradient, count, work.inner)
    add_transposed_times(work.joined, 0, count, work.inner_gradient, 0, gradients.inner)
    add_column_sums(work.inner_gradient, 0, count, gradients.inner_bias)
    rows_times(work.inner_gradient, 0, count, transposed.inner, work.nodes_gradient, 0)
