"""Compiled training steps of a whole GIN without normalisation; see `fedmpi.kernels.gin_network`.

All steps of an epoch are one call: for each batch it packs the graphs, runs forward, head, loss and back,
and takes a step of the optimizer. Shapes are those of `fedmpi.kernels.gin_passes`; c are the outputs, padded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import Int
from fedmpi.graphs.products import Floats
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels import gin_passes, head_loops
from fedmpi.kernels.gin_packing import Graphs, packed
from fedmpi.kernels.gin_passes import Maps, Matrices, Room
from fedmpi.kernels.linear_map import Linear
from fedmpi.kernels.targets import CLASSES, judge_rows
from fedmpi.kernels.vectors import Descent, descend

TRAINING, GRADIENT, FORWARD, BACK = range(4)
"""What `run` does of each step: all of it; all but the optimizer's; up to the gradient of what is pooled,
or from there on."""

COUNTS = 8
GRAPHS, NODES, EDGES, INPUTS, FIRST_ROWS, FIRST_ENTRIES, ROWS, ENTRIES = range(COUNTS)
"""What `run` counts of each step: graphs, nodes, directed edges, feature rows, and the rows and entries of
the first layer's matrix and of the others'."""


class Plan(NamedTuple):
    """Which graphs each step takes.

    Attributes
    ----------
    order : int64 [n]
        Numbers of the graphs.
    starts : int64 [steps + 1]
        Where each step's begin in `order`.
    streams : uint64 [steps, L + 1]
        Keys of each step's dropout.
    whole : bool
        Every step takes all graphs, in order.
    """

    order: Int
    starts: Int
    streams: Words
    whole: bool


class Network(NamedTuple):
    """A model's vectors and its maps.

    Attributes
    ----------
    parameters, gradient : float32 [length]
    starts : int64 [2 L, 2]
        Where weight and bias of each map of a layer begin.
    maps : Maps
    pre, post, readout : Linear
        Of the inputs, and the head's two.
    places : int64 [3, 4]
        Of these: where weight and bias begin, outputs, inputs.
    hidden, kind : int
        Columns without padding, and the kind of targets.
    how : Drop
    """

    parameters: Floats
    gradient: Floats
    starts: Int
    maps: Maps
    pre: Linear
    post: Linear
    readout: Linear
    places: Int
    hidden: int
    kind: int
    how: Drop


class HeadRoom(NamedTuple):
    """What the largest step keeps of the head: float32 [B, h], `gradient` [B, c], `kept` uint16."""

    pooled: Floats
    hidden: Floats
    kept: npt.NDArray[np.uint16]
    dropped: Floats
    between: Floats
    before: Floats
    gradient: Floats


class Results(NamedTuple):
    """What steps found of each graph in the plan's order.

    Attributes
    ----------
    losses : float64 [n]
    hits : uint8 [n]
    logits : float32 [n, c]
    counts : int64 [steps, 8]
        Sizes of each step's batch.
    """

    losses: npt.NDArray[np.float64]
    hits: npt.NDArray[np.uint8]
    logits: Floats
    counts: Int


@compiled
def run(
    phase: int,
    graphs: Graphs,
    plan: Plan,
    network: Network,
    room: Room,
    head: HeadRoom,
    descent: Descent,
    mean: Floats,
    square: Floats,
    results: Results,
) -> None:
    """Run the steps of a plan; the gradient is left as that of the last.

    Parameters
    ----------
    phase : int
        How much of each step.
    graphs : Graphs
    plan : Plan
    network : Network
    room, head
        Scratch; room for the largest step.
    descent : Descent
    mean, square : float32 [trained]
        Moments of the optimizer.
    results : Results
    """
    trained = len(mean)
    for step in range(len(plan.starts) - 1):
        first, last = plan.starts[step], plan.starts[step + 1]
        chosen, keys = plan.order[first:last], plan.streams[step]
        batch = graphs.matrices if plan.whole else packed(graphs, chosen)
        fitting = _fitting(room, batch)
        pooled, before = head.pooled[: last - first], head.before[: last - first]
        if phase != BACK:
            _count(graphs, chosen, batch, results.counts[step])
            _load(network)
            gin_passes.forward(
                batch, network.pre, network.maps, keys, network.how, network.hidden, fitting, pooled
            )
            _head(graphs.targets, chosen, keys, network, head, first, results)
        if phase == FORWARD:
            continue
        gin_passes.back(batch, network.pre, network.maps, network.how, fitting, before)
        _store(network.pre, network.places[0], network.gradient)
        gin_passes.store(network.maps, network.starts, network.hidden, network.gradient)
        if phase == TRAINING:
            parameters, gradient = network.parameters[:trained], network.gradient[:trained]
            descend(descent, step, parameters, gradient, mean, square)


@compiled
def _head(
    targets: npt.NDArray[np.float64],
    chosen: Int,
    keys: Words,
    network: Network,
    head: HeadRoom,
    first: int,
    results: Results,
) -> None:
    """Run the head of a step forward and back, from what is pooled to its gradient."""
    count, layers, outputs = len(chosen), len(network.starts) // 2, network.places[2, 2]
    pooled, hidden, kept, dropped = (
        head.pooled[:count],
        head.hidden[:count],
        head.kept[:count],
        head.dropped[:count],
    )
    logits, gradient = results.logits[first : first + count], head.gradient[:count]
    losses, hits = results.losses[first : first + count], results.hits[first : first + count]
    head_loops.forward(
        pooled, network.post, network.readout, keys, layers, network.how, network.hidden, hidden, kept,
        dropped, logits,
    )  # fmt: skip
    gradient[:] = np.float32(0.0)
    if network.kind == CLASSES:
        labels = np.empty(count, np.int64)
        for b in range(count):
            labels[b] = np.int64(targets[chosen[b], 0])
        head_loops.cross_entropy(logits, labels, outputs, gradient, losses, hits)
    else:
        wanted = np.empty((count, targets.shape[1]))
        for b in range(count):
            for task in range(targets.shape[1]):
                wanted[b, task] = targets[chosen[b], task]
        judge_rows(network.kind, wanted, outputs, logits, gradient, losses)
    head_loops.back(
        gradient, pooled, hidden, kept, dropped, network.how.scale, network.post, network.readout,
        head.between[:count], head.before[:count],
    )  # fmt: skip
    _store(network.readout, network.places[2], network.gradient)
    _store(network.post, network.places[1], network.gradient)


@compiled
def _load(network: Network) -> None:
    """Take over the model's parameters; all gradients become 0."""
    gin_passes.load(network.parameters, network.starts, network.hidden, network.maps)
    network.gradient[:] = np.float32(0.0)
    _load_map(network.parameters, network.places[0], network.pre)
    _load_map(network.parameters, network.places[1], network.post)
    _load_map(network.parameters, network.places[2], network.readout)


@compiled
def _load_map(parameters: Floats, place: Int, of: Linear) -> None:
    weight, bias, outputs, inputs = place[0], place[1], place[2], place[3]
    for i in range(outputs):
        for j in range(inputs):
            value = parameters[weight + i * inputs + j]
            of.weight[i, j] = value
            of.transposed[j, i] = value
        of.bias[i] = parameters[bias + i]
    of.weight_gradient[:] = np.float32(0.0)
    of.bias_gradient[:] = np.float32(0.0)


@compiled
def _store(of: Linear, place: Int, gradient: Floats) -> None:
    """Write the gradients of a map to the model's."""
    weight, bias, outputs, inputs = place[0], place[1], place[2], place[3]
    for i in range(outputs):
        for j in range(inputs):
            gradient[weight + i * inputs + j] = of.weight_gradient[i, j]
        gradient[bias + i] = of.bias_gradient[i]


@compiled
def _fitting(room: Room, batch: Matrices) -> Room:
    """Return the part of a room that a batch takes."""
    rows = len(batch.first_of)
    return Room(
        room.rows[: len(batch.inputs)],
        room.summed,
        room.inner,
        room.out,
        room.kept,
        room.dropped[:rows],
        room.gradient,
        room.upstream,
    )


@compiled
def _count(graphs: Graphs, chosen: Int, batch: Matrices, counts: Int) -> None:
    counts[:] = 0
    counts[GRAPHS] = len(chosen)
    for graph in chosen:
        counts[NODES] += graphs.node_ptr[graph + 1] - graphs.node_ptr[graph]
        counts[EDGES] += graphs.num_edges[graph]
    counts[INPUTS] = len(batch.inputs)
    counts[FIRST_ROWS], counts[FIRST_ENTRIES] = len(batch.first[0]) - 1, len(batch.first[1])
    counts[ROWS], counts[ENTRIES] = len(batch.first_of), len(batch.closed[1])
