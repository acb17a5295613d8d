"""The readout that the three models end in, its loss, and back: one graph at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import (
    Floats,
    add_bias,
    add_bias_relu,
    add_column_sums,
    add_transposed_times,
    relu_backward,
    rows_times,
)
from fedmpi.kernels.molecules.arrays import CLASSES, LABELS, Molecules, Network, Work


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
def judge(kind: int, targets: npt.NDArray[np.float64], outputs: int, share: float, work: Work) -> float:
    """Return a graph's loss, and set `logits_gradient`.

    Parameters
    ----------
    kind : int
        `CLASSES` (negative log-likelihood), `LABELS` (binary cross-entropy of the labels that are not
        NaN) or `NUMBERS` (squared error).
    targets : float64 [T]
    outputs : int
        Number of logits that count; the others are padding.
    share : float
        Factor of the gradient: 1 / labels of the batch.
    work : Work
    """
    logits, gradient, total = work.logits[0], work.logits_gradient[0], 0.0
    if kind == CLASSES:
        return _judge_class(int(targets[0]), outputs, share, logits, gradient)
    for task in range(len(targets)):
        wanted, logit = targets[task], np.float64(logits[task])
        if np.isnan(wanted):
            gradient[task] = np.float32(0.0)
        elif kind == LABELS:
            small = np.exp(-abs(logit))
            total += (logit if logit > 0.0 else 0.0) - logit * wanted + np.log1p(small)
            likely = (1.0 if logit >= 0.0 else small) / (1.0 + small)
            gradient[task] = np.float32((likely - wanted) * share)
        else:
            error = logit - wanted
            total += error * error
            gradient[task] = np.float32(2.0 * error * share)
    return total


@compiled
def _judge_class(label: int, classes: int, share: float, logits: Floats, gradient: Floats) -> float:
    top, norm = np.float64(logits[0]), 0.0
    for c in range(1, classes):
        top = max(top, np.float64(logits[c]))
    for c in range(classes):
        norm += np.exp(np.float64(logits[c]) - top)
    for c in range(classes):
        likely = np.exp(np.float64(logits[c]) - top) / norm
        gradient[c] = np.float32((likely - (1.0 if c == label else 0.0)) * share)
    loss: float = np.log(norm) + top - np.float64(logits[label])
    return loss


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
