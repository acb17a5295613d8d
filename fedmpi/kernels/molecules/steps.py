"""Local epochs and evaluations of a molecule model, each in one compiled call."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels.molecules import gat, gcn, readout, sage
from fedmpi.kernels.molecules.arrays import GCN, SAGE, GraphResults, Molecules, Network, Plan, Spot, Work
from fedmpi.kernels.targets import judge
from fedmpi.kernels.vectors import Descent, descend

TRAINING, EVALUATING = np.bool_(True), np.bool_(False)
"""Numba would compile all networks twice for Python's `True` and `False`, which it takes for two types."""


@compiled
def train(
    graphs: Molecules,
    plan: Plan,
    drop: Drop,
    network: Network,
    descent: Descent,
    mean: Floats,
    square: Floats,
    work: Work,
    results: GraphResults,
) -> None:
    """Take a step for each batch of a plan; the gradient is left as that of the last.

    Parameters
    ----------
    mean, square : float32 [length of the network's vector]
        Moments of the optimizer.
    """
    for step in range(len(plan.starts) - 1):
        set_gradient(graphs, plan, step, drop, network, work, results)
        descend(descent, step, network.vector, network.gradient, mean, square)


@compiled
def set_gradient(
    graphs: Molecules, plan: Plan, step: int, drop: Drop, network: Network, work: Work, results: GraphResults
) -> None:
    """Set the network's gradient to that of a batch's mean loss over its labels, with dropout.

    Parameters
    ----------
    step : int
        Number of the batch in the plan.
    graphs, plan, drop, network, work, results
        As for `train`.
    """
    _update_transposed(network)
    network.gradient[:] = np.float32(0.0)
    labels = 0
    for number in range(plan.starts[step], plan.starts[step + 1]):
        for wanted in graphs.targets[plan.order[number]]:
            labels += 0 if np.isnan(wanted) else 1
    share, spot = 1.0 / labels, _before(graphs, plan, step)
    for number in range(plan.starts[step], plan.starts[step + 1]):
        spot = _next(graphs, plan.order[number], spot)
        _forward(graphs, spot, plan.streams[step], drop, TRAINING, network, work)
        _record(graphs, plan.order[number], number, share, network, work, results)
        readout.read_out_back(spot.num_nodes, network, work)
        if network.kind == GCN:
            gcn.back(graphs, spot, network, work)
        elif network.kind == SAGE:
            sage.back(spot, network, work)
        else:
            gat.back(graphs, spot, network, work)


@compiled
def evaluate(
    graphs: Molecules, plan: Plan, drop: Drop, network: Network, work: Work, results: GraphResults
) -> None:
    """Write losses, outputs and pooled rows of a plan's graphs to `results`, without dropout.

    Parameters
    ----------
    graphs, plan, drop, network, work, results
        As for `train`.
    """
    for step in range(len(plan.starts) - 1):
        spot = _before(graphs, plan, step)
        for number in range(plan.starts[step], plan.starts[step + 1]):
            spot = _next(graphs, plan.order[number], spot)
            _forward(graphs, spot, plan.streams[step], drop, EVALUATING, network, work)
            for j in range(results.pooled.shape[1]):
                results.pooled[number, j] = work.pooled[0, j]
            _record(graphs, plan.order[number], number, 0.0, network, work, results)


@compiled
def _forward(
    graphs: Molecules,
    spot: Spot,
    streams: Words,
    drop: Drop,
    training: np.bool_,
    network: Network,
    work: Work,
) -> None:
    """Compute a graph's logits."""
    if network.kind == GCN:
        gcn.forward(graphs, spot, streams, drop, training, network, work)
    elif network.kind == SAGE:
        sage.forward(graphs, spot, streams, drop, training, network, work)
    else:
        gat.forward(graphs, spot, streams, drop, training, network, work)
    readout.pool(graphs, spot.first, spot.num_nodes, network, work)
    readout.read_out(network, work)


@compiled
def _before(graphs: Molecules, plan: Plan, step: int) -> Spot:
    """Return a spot of no nodes at the start of a batch."""
    nodes = 0
    for number in range(plan.starts[step], plan.starts[step + 1]):
        graph = plan.order[number]
        nodes += graphs.node_ptr[graph + 1] - graphs.node_ptr[graph]
    return Spot(0, 0, 0, 0, nodes)


@compiled
def _next(graphs: Molecules, graph: np.int64, spot: Spot) -> Spot:
    """Return the spot of a graph that comes after another one in its batch."""
    entries = int(graphs.pointers[spot.first + spot.num_nodes] - graphs.pointers[spot.first])
    first = graphs.node_ptr[graph]
    num_nodes = graphs.node_ptr[graph + 1] - first
    return Spot(first, num_nodes, spot.nodes + spot.num_nodes, spot.entries + entries, spot.all_nodes)


@compiled
def _record(
    graphs: Molecules,
    graph: int,
    number: int,
    share: float,
    network: Network,
    work: Work,
    results: GraphResults,
) -> None:
    """Store a graph's loss and outputs, and the gradient of its logits."""
    targets = graphs.targets[graph]
    logits, gradient = work.logits[0], work.logits_gradient[0]
    results.losses[number] = judge(network.task, targets, network.outputs, share, logits, gradient)
    for task in range(network.outputs):
        results.outputs[number, task] = logits[task]


@compiled
def _update_transposed(network: Network) -> None:
    """Set the transposed matrices from the weights."""
    weights, transposed = network.weights, network.transposed
    _transpose(weights.second, transposed.second)
    _transpose(weights.inner, transposed.inner)
    _transpose(weights.outer, transposed.outer)
    _transpose(weights.last, transposed.last)


@compiled
def _transpose(matrix: Floats, out: Floats) -> None:
    """Set `out` [n, m] to the transpose of the first m rows of `matrix`."""
    for j in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[j, i] = matrix[i, j]
