"""Compiled passes of a graph network's head over a row per graph; see `fedmpi.kernels.head`.

Shapes: B graphs, h columns (the hidden width, padded), c outputs, padded. All float arrays are float32
and C-contiguous.
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels.dropout_loops import drop, dropout_backward
from fedmpi.kernels.linear_map import Linear, add_gradients, apply


@compiled
def forward(
    pooled: Floats,
    post: Linear,
    readout: Linear,
    streams: Words,
    number: int,
    how: Drop,
    columns: int,
    hidden: Floats,
    kept: np.ndarray,
    dropped: Floats,
    logits: Floats,
) -> None:
    """Set the logits of rows, and what `back` needs.

    Parameters
    ----------
    pooled : float32 [B, h]
    post, readout : Linear
    streams, number, how
        As `drop` takes them.
    columns : int
        Of a hidden row, without padding.
    hidden, dropped : float32 [B, h]
        Set to the hidden rows before and after dropout.
    kept : uint8 or uint16 [B, h]
    logits : float32 [B, c]
    """
    own = np.arange(len(pooled) + 1).astype(np.int32)
    apply(pooled, post.transposed, post.bias, hidden, True)
    drop(streams, number, how, own, own[:-1], columns, hidden, own[:-1], kept, dropped)
    apply(dropped, readout.transposed, readout.bias, logits, False)


@compiled
def back(
    gradient: Floats,
    pooled: Floats,
    hidden: Floats,
    kept: np.ndarray,
    dropped: Floats,
    scale: np.float32,
    post: Linear,
    readout: Linear,
    between: Floats,
    out: Floats,
) -> None:
    """Add to the gradients of both maps, and set `out` to that of the rows, from that of the logits.

    Parameters
    ----------
    gradient : float32 [B, c]
    pooled, hidden, kept, dropped, post, readout
        As of `forward`.
    scale : float32
        1 / (1 - p).
    between, out : float32 [B, h]
        The former is scratch.
    """
    own = np.arange(len(pooled) + 1).astype(np.int32)
    ones = np.ones(len(pooled), np.float32)
    add_gradients(gradient, dropped, readout.weight_gradient, readout.bias_gradient)
    products.multiply(gradient, readout.weight, out)
    dropout_backward(own, own[:-1], ones, out, own[:-1], kept, scale, hidden, between)
    add_gradients(between, pooled, post.weight_gradient, post.bias_gradient)
    products.multiply(between, post.weight, out)


@compiled
def cross_entropy(
    logits: Floats, labels: np.ndarray, classes: int, gradient: Floats, losses: np.ndarray, hits: np.ndarray
) -> None:
    """Set the rows' negative log-likelihoods, the gradient of their mean, and which rows are right.

    Parameters
    ----------
    logits, gradient : float32 [B, >= classes]
    labels : int64 [B]
    losses : float64 [B]
    hits : uint8 [B]
        Set to 1 where the largest logit (the first of equals) is the label's.
    """
    shares = np.empty(classes)
    for b in range(len(labels)):
        best = 0
        for c in range(1, classes):
            if logits[b, c] > logits[b, best]:
                best = c
        hits[b] = 1 if best == labels[b] else 0
        top, norm = np.float64(logits[b, best]), 0.0
        for c in range(classes):
            shares[c] = np.exp(np.float64(logits[b, c]) - top)
            norm += shares[c]
        for c in range(classes):
            share = shares[c] / norm
            share -= 1.0 if c == labels[b] else 0.0
            gradient[b, c] = np.float32(share / len(labels))
        losses[b] = np.log(norm) + top - np.float64(logits[b, labels[b]])
