"""Compiles the kernels of a fast model before rounds are timed, once in a process that runs many cases."""

from __future__ import annotations

from functools import cache

import numpy as np

from fedmpi.graphs.packed import GraphSet, Topology, sparse
from fedmpi.graphs.refinement.colours import ColouredGraphs
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.kernels.molecules.fast import FastMolecules, Moments
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.targets import LABELS
from fedmpi.kernels.vectors import Descent
from fedmpi.models import options as models
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build


def warm_up(options: models.ModelOptions, examples: str = "graph") -> None:
    """Compile every kernel of a model that has fast ones for such examples, or take it from the cache."""
    if examples == "node":
        _warm_up_nodes(options.model_copy(update={"hidden": 16, "layers": 2}))
    elif isinstance(options, models.FedGraphNNOptions):
        _warm_up_molecules(options)
    elif isinstance(options, models.GinEncoderOptions):
        _warm_up_encoder()
    elif isinstance(options, models.FedStarOptions):
        _warm_up(models.FedStarOptions(hidden=16, layers=2, walks=1, degrees=1))
    else:
        _warm_up(options.model_copy(update={"hidden": 16, "layers": 2}))


@cache
def _warm_up_molecules(options: models.FedGraphNNOptions) -> None:
    """Call what trains and evaluates molecules, on a single atom."""
    model = FlatModel(build(options, models.Shape(1, 1)))
    fast, streams = FastMolecules(options, model, LABELS), DropoutStreams(0, 0, 0, 0)
    atom = Topology(np.array([0, 1]), np.zeros(2, np.int64), np.zeros(0, np.int64))
    graphs = GraphSet(atom, np.ones((1, 1), np.float32), np.zeros(1, np.int64), np.zeros((1, 1)))
    single, one = np.float32(1), np.ones(1, np.float32)
    descent = Descent(True, single, single, single, single, single, np.float64(0), one, one)
    moments = Moments(*np.zeros((2, model.trained), np.float32))
    ready, batch = fast.molecules(graphs, graphs.labels), np.zeros(1, np.int64)
    fast.train(ready, [batch], [streams], descent, moments)
    fast.step(ready, batch, streams)
    fast.evaluate(ready, [batch])


@cache
def _warm_up_encoder() -> None:
    """Call what trains and evaluates an encoder, on a pair of nodes."""
    options = models.GinEncoderOptions(hidden=16, layers=2)
    model = FlatModel(build(options, models.Shape(1, 2)))
    fast = FastEncoder(options, model, (Scratch(), Scratch()))
    pair = Topology(np.array([0, 2]), np.array([0, 1, 2]), np.array([1, 0]))
    graphs = GraphSet(pair, np.ones((1, 1), np.float32), np.zeros(2, np.int64), np.zeros(1, np.int64))
    rows = ColouredGraphs(graphs, None, options.layers, by_node=True).take(None)
    fast.encode(rows, training=False)
    found = fast.encode(rows, training=True)
    (found.nodes.sum() + found.graphs.sum()).backward()  # type: ignore[no-untyped-call]


@cache
def _warm_up(options: models.ModelOptions) -> None:
    """Call what trains and evaluates with such options, on a pair and on many twins."""
    model, scratch = FlatModel(build(options, models.Shape(1, 2))), Scratch()
    fast, streams = fast_network(options, model, scratch), DropoutStreams(0, 0, 0, 0)
    for size in (2, 256):  # so many twins are counted in 8 and in 16 bits
        columns = np.concatenate([np.delete(np.arange(size), node) for node in range(size)])
        clique = Topology(np.array([0, size]), np.arange(size + 1) * (size - 1), columns)
        nodes, labels = np.zeros(size, np.int64), np.zeros(1, np.int64)
        ones, structure = np.ones((1, 1), np.float32), np.ones((size, 2), np.float32)
        graphs = GraphSet(clique, ones, nodes, labels, structure=structure)
        everything = fast.prepare(graphs)
        fast.step(everything, streams)
        fast.step(everything.take(np.array([0, 0])), streams)
    everything.take(np.array([0]))  # keeps only its own feature rows
    pair = graphs.take(np.array([0, 0]))
    fast.evaluate(fast.levels(pair), pair.labels)
    fast_network(options, model, scratch, LABELS).evaluate(fast.levels(pair), np.zeros((2, 2)))


@cache
def _warm_up_nodes(options: models.ModelOptions) -> None:
    """Call what trains and evaluates with such options, on a pair of nodes with sparse and dense features."""
    model = FlatModel(build(options, models.Shape(1, 2)))
    fast = fast_network(options, model, Scratch(), of="node")
    pair = Topology(np.array([0, 2]), np.array([0, 1, 2]), np.array([1, 0]))
    nodes, ones = np.arange(2), np.ones((2, 1), np.float32)
    for features in (sparse(ones), ones):
        graphs = GraphSet(pair, features, nodes, np.zeros(2, np.int64), places=nodes)
        fast.step(fast.prepare(graphs), DropoutStreams(0, 0, 0, 0))
        fast.evaluate(fast.levels(graphs), graphs.labels)
