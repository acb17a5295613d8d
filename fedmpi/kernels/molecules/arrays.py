"""What the compiled passes over molecules work on: graphs, weights, gradients, scratch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.products import Floats, Ints

Longs = npt.NDArray[np.int64]

GCN, SAGE, GAT = range(3)
"""Kinds of the two layers below the readout."""

STREAMS = (1, 3, 4)
"""Random streams of a step that each kind reads."""


class Molecules(NamedTuple):
    """G graphs with N nodes and E entries of the sparse matrix that their nodes are combined by.

    Attributes
    ----------
    node_ptr : int64 [G + 1]
        Nodes of each graph.
    pointers, columns : int32 [N + 1], int32 [E]
        The matrix by receivers, A + I; columns count from the graph's first node.
    weights : float32 [E]
        Its entries, normalised, for GCN; else empty.
    back_pointers, back_columns, back_weights
        The same of its transpose, for GCN; else empty.
    inputs, features : float32 [N, f]
        What the first layer reads (for GCN the matrix times the features), and what the readout reads.
    targets : float64 [G, T]
        As their kind has them: see `fedmpi.kernels.targets`.
    """

    node_ptr: Longs
    pointers: Ints
    columns: Ints
    weights: Floats
    back_pointers: Ints
    back_columns: Ints
    back_weights: Floats
    inputs: Floats
    features: Floats
    targets: npt.NDArray[np.float64]


class Weights(NamedTuple):
    """Matrices as the forward pass multiplies by them, [in, out], widths padded by zeros to 16; or gradients.

    Attributes
    ----------
    first, second : float32 [i, h], [k, d]
        Of the two layers below the readout.
    attend, last_attend : float32 [2, h], [2, d]
        GAT's numbers of receivers and of senders, head after head; without rows for the others.
    inner, outer, last : float32 [d + f, r], [r, g], [g, C]
        Of the readout; its first reads the nodes' states before their features.
    inner_bias, outer_bias, last_bias : float32 [r], [g], [C]
    """

    first: Floats
    second: Floats
    attend: Floats
    last_attend: Floats
    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: Floats
    last: Floats
    last_bias: Floats


class Transposed(NamedTuple):
    """Transposed matrices, for the gradient of what they are multiplied by; `inner` without the features."""

    second: Floats
    inner: Floats
    outer: Floats
    last: Floats


class Network(NamedTuple):
    """A model: `vector` and `gradient` are of all parameters, `weights` and `gradients` views of them.

    Attributes
    ----------
    kind : int
        `GCN`, `SAGE` or `GAT`.
    task : int
        Kind of the targets.
    hidden, outputs : int
        Widths of the first layer and of the last, without padding.
    leak : float32
        Slope of GAT's LeakyReLU below 0.
    """

    kind: int
    task: int
    hidden: int
    outputs: int
    leak: np.float32
    weights: Weights
    transposed: Transposed
    gradients: Weights
    vector: Floats
    gradient: Floats


class Attention(NamedTuple):
    """Scratch of one layer of attention with k heads over n nodes and E entries; empty for other kinds.

    Attributes
    ----------
    heads, width : int
        k, and the columns of a head.
    states, states_gradient : float32 [n, w]
        What is attended to, and its gradient.
    scores, scores_gradient : float32 [n, 2 k]
        Of each node as receiver and as sender.
    shares, factors, shares_gradient : float32 [E, k]
        Attention before dropout, and dropout's factors.
    lanes : float32 [16]
    """

    heads: int
    width: int
    states: Floats
    states_gradient: Floats
    scores: Floats
    scores_gradient: Floats
    shares: Floats
    factors: Floats
    shares_gradient: Floats
    lanes: Floats


class Work(NamedTuple):
    """Scratch of one graph, rows for its n nodes; R = 3 n for GraphSAGE, n for the others.

    Attributes
    ----------
    words : uint64 [*]
    inputs : float32 [R, i]
        What the first layer reads, where that is not the graph's own `inputs`.
    input_factors : float32 [n, f]
        Dropout's factors of GAT's inputs.
    hidden, factors : float32 [R, h]
        The first layer's output, and dropout's factors; dropped already but for GAT.
    second : float32 [n, k]
        What the second layer reads, where that is not `hidden`.
    attention, last_attention : Attention
    states : float32 [n, d]
    joined : float32 [n, d + f]
        The second layer's output beside the features.
    inner, outer : float32 [n, r], [n, g]
    pooled, logits : float32 [1, g], [1, C]
    logits_gradient, pooled_gradient, outer_gradient, inner_gradient, nodes_gradient, states_gradient,
    second_gradient, hidden_gradient : float32
        Gradients; `nodes_gradient` is that of the second layer's output.
    """

    words: npt.NDArray[np.uint64]
    inputs: Floats
    input_factors: Floats
    hidden: Floats
    factors: Floats
    second: Floats
    attention: Attention
    last_attention: Attention
    states: Floats
    joined: Floats
    inner: Floats
    outer: Floats
    pooled: Floats
    logits: Floats
    logits_gradient: Floats
    pooled_gradient: Floats
    outer_gradient: Floats
    inner_gradient: Floats
    nodes_gradient: Floats
    states_gradient: Floats
    second_gradient: Floats
    hidden_gradient: Floats


class Plan(NamedTuple):
    """Batches of an epoch, one after another.

    Attributes
    ----------
    order : int64 [graphs]
        Graphs in the order in which they come.
    starts : int64 [S + 1]
        Where in it each batch starts.
    streams : uint64 [S, streams]
        Random streams of each step, by the model's numbers of them.
    """

    order: Longs
    starts: Longs
    streams: npt.NDArray[np.uint64]


class Spot(NamedTuple):
    """A graph of a batch.

    Attributes
    ----------
    first, num_nodes : int
        Its nodes, among those of all graphs.
    nodes, entries : int
        Nodes and entries of the batch before it.
    all_nodes : int
        Nodes of the batch.
    """

    first: int
    num_nodes: int
    nodes: int
    entries: int
    all_nodes: int


class GraphResults(NamedTuple):
    """Results of the graphs, in the order of the plan.

    Attributes
    ----------
    losses : float64 [G]
        Sum over its labels.
    outputs, pooled : float32 [G, C], [G, g]
        `pooled` is what the last layer reads.
    """

    losses: npt.NDArray[np.float64]
    outputs: Floats
    pooled: Floats
