"""Scratch of the compiled passes over molecules, and the FLOPs that they do in it."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.products import LANES
from fedmpi.kernels.molecules.arrays import GAT, GCN, SAGE, Attention, Network, Work
from fedmpi.kernels.scratch import zeros
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import FedGraphNNGatOptions, FedGraphNNOptions


def made(options: FedGraphNNOptions, network: Network, width: int, nodes: int, entries: int) -> Work:
    """Return scratch for a graph of so many nodes and entries.

    Parameters
    ----------
    options : FedGraphNNOptions
    network : Network
        Its widths.
    width : int
        Of the features.
    """
    weights, kind = network.weights, network.kind
    hidden, node = weights.first.shape[1], weights.second.shape[1]
    inner, outer, last = weights.inner.shape[1], weights.outer.shape[1], weights.last.shape[1]
    rows = 3 * nodes if kind == SAGE else nodes
    own_inputs, own_second = rows * (kind != GCN), nodes * (kind != GCN)
    heads = options.heads if isinstance(options, FedGraphNNGatOptions) else 1
    attended = (nodes, entries) if kind == GAT else (0, 0)
    return Work(
        words=np.zeros(max(rows * max(hidden, width), entries * heads) // 2 + 2, np.uint64),
        inputs=zeros(own_inputs, weights.first.shape[0]),
        input_factors=zeros(attended[0], width),
        hidden=zeros(rows, hidden),
        factors=zeros(rows, hidden),
        second=zeros(own_second, weights.second.shape[0]),
        attention=_attention(*attended, heads, options.hidden, hidden),
        last_attention=_attention(*attended, 1, options.node, node),
        states=zeros(nodes, node),
        joined=zeros(nodes, node + width),
        inner=zeros(nodes, inner),
        outer=zeros(nodes, outer),
        pooled=zeros(1, outer),
        logits=zeros(1, last),
        logits_gradient=zeros(1, last),
        pooled_gradient=zeros(1, outer),
        outer_gradient=zeros(nodes, outer),
        inner_gradient=zeros(nodes, inner),
        nodes_gradient=zeros(nodes, node),
        states_gradient=zeros(nodes, node),
        second_gradient=zeros(own_second, weights.second.shape[0]),
        hidden_gradient=zeros(rows, hidden),
    )


def _attention(nodes: int, entries: int, heads: int, width: int, columns: int) -> Attention:
    return Attention(
        heads=heads,
        width=width,
        states=zeros(nodes, columns),
        states_gradient=zeros(nodes, columns),
        scores=zeros(nodes, 2 * heads),
        scores_gradient=zeros(nodes, 2 * heads),
        shares=zeros(entries, heads),
        factors=zeros(entries, heads),
        shares_gradient=zeros(entries, heads),
        lanes=zeros(LANES),
    )


def executed(network: Network, width: int, counts: GraphCounts, *, training: bool) -> int:
    """Return the FLOPs of the compiled passes over these graphs, with what padding adds.

    A sum over neighbours takes a product and an addition per entry and column; the features need no
    gradient, in the first layer as in the readout.

    Parameters
    ----------
    network : Network
        Its padded widths.
    width : int
        Of the features.
    counts : GraphCounts
    training : bool
        Forward and backward, or forward alone.
    """
    weights, nodes = network.weights, counts.nodes
    rows = 3 * nodes if network.kind == SAGE else nodes
    first = 2 * rows * weights.first.size
    dense = first + 2 * nodes * (weights.second.size + weights.inner.size + weights.outer.size)
    dense += 2 * counts.graphs * weights.last.size
    forward, back = _sums(network, width, counts)
    pooling = nodes * weights.outer.shape[1]
    if not training:
        return int(dense + forward + pooling)
    unneeded = first + 2 * nodes * width * weights.inner.shape[1]
    return int(3 * dense - unneeded + forward + back + pooling)


def _sums(network: Network, width: int, counts: GraphCounts) -> tuple[int, int]:
    """Return the FLOPs of sums over neighbours, forward and back."""
    hidden, node = network.weights.first.shape[1], network.weights.second.shape[1]
    entries = counts.edges + counts.nodes
    if network.kind == GCN:
        return 2 * entries * node, 2 * entries * node
    if network.kind == SAGE:
        of_states = 2 * counts.nodes * hidden
        return 2 * 3 * counts.nodes * width + of_states, of_states
    scores, sums = 4 * counts.nodes * (hidden + node), 2 * entries * (hidden + node)
    return scores + sums, 2 * (scores + sums)
