"""GCN of one graph: ``A dropout((A X) W1) W2`` with the normalised A, and back; `inputs` are A X."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import add_transposed_times, combine, rows_times, scale_rows
from fedmpi.graphs.streams import Drop, Words, draw_factors
from fedmpi.kernels.molecules.arrays import Molecules, Network, Spot, Work


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
        The step's random streams; dropout's is the first.
    """
    first, count = spot.first, spot.num_nodes
    rows_times(graphs.inputs, first, count, network.weights.first, work.hidden, 0)
    if training:
        draw_factors(streams[0], drop, spot.nodes, count, network.hidden, work.words, work.factors, 0)
        scale_rows(work.hidden, 0, count, work.factors)
    rows_times(work.hidden, 0, count, network.weights.second, work.states, 0)
    combine(graphs.pointers, graphs.columns, graphs.weights, work.states, first, count, work.joined, 0)


@compiled
def back(graphs: Molecules, spot: Spot, network: Network, work: Work) -> None:
    """Add the gradients of a graph's two layers, from `nodes_gradient`.

    Parameters
    ----------
    graphs, spot, network, work
        As for `fedmpi.kernels.molecules.gat.back`.
    """
    first, count = spot.first, spot.num_nodes
    combine(
        graphs.back_pointers, graphs.back_columns, graphs.back_weights, work.nodes_gradient, first, count,
        work.states_gradient, 0,
    )  # fmt: skip
    add_transposed_times(work.hidden, 0, count, work.states_gradient, 0, network.gradients.second)
    rows_times(work.states_gradient, 0, count, network.transposed.second, work.hidden_gradient, 0)
    scale_rows(work.hidden_gradient, 0, count, work.factors)
    add_transposed_times(graphs.inputs, first, count, work.hidden_gradient, 0, network.gradients.first)
