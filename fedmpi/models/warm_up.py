"""Compiles the kernels of a fast model before rounds are timed."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.quotient import quotient
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.fast_gin import FastGin
from fedmpi.models.flat import FlatModel
from fedmpi.models.molecules.arrays import LABELS
from fedmpi.models.molecules.fast import FastMolecules, Moments
from fedmpi.models.networks import build
from fedmpi.models.options import FedGraphNNOptions, GinOptions, ModelOptions, MoleculeOptions, Shape
from fedmpi.models.scratch import Scratch
from fedmpi.models.vectors import Descent


def warm_up(options: ModelOptions) -> None:
    """Compile every kernel of a model that has fast ones, or take it from the cache."""
    if isinstance(options, FedGraphNNOptions):
        _warm_up_molecules(options)
    else:
        _warm_up_gin()


def _warm_up_molecules(options: MoleculeOptions) -> None:
    """Call what trains and evaluates molecules, on a single atom."""
    model = FlatModel(build(options, Shape(1, 1)))
    fast, streams = FastMolecules(options, model, LABELS), DropoutStreams(0, 0, 0, 0)
    atom = Topology(np.array([0, 1]), np.zeros(2, np.int64), np.zeros(0, np.int64))
    graphs = GraphSet(atom, np.ones((1, 1), np.float32), np.zeros(1, np.int64), np.zeros((1, 1)))
    single, one = np.float32(1), np.ones(1, np.float32)
    descent = Descent(True, single, single, single, single, single, one, one)
    moments = Moments(*np.zeros((2, model.trained), np.float32))
    ready, batch = fast.molecules(graphs, graphs.labels), np.zeros(1, np.int64)
    fast.train(ready, [batch], [streams], descent, moments)
    fast.step(ready, batch, streams)
    fast.evaluate(ready, [batch])


def _warm_up_gin() -> None:
    """Do so for the GIN, on a pair and on many twins."""
    for norm in ("none", "batch", "graph"):
        _warm_up_norm(GinOptions(hidden=16, layers=2, norm=norm))


def _warm_up_norm(options: GinOptions) -> None:
    model = FlatModel(build(options, Shape(1, 2)))
    fast, streams = FastGin(options, model, Scratch()), DropoutStreams(0, 0, 0, 0)
    for size in (2, 256):  # so many twins are counted in 8 and in 16 bits
        columns = np.concatenate([np.delete(np.arange(size), node) for node in range(size)])
        clique = Topology(np.array([0, size]), np.arange(size + 1) * (size - 1), columns)
        nodes, labels = np.zeros(size, np.int64), np.zeros(1, np.int64)
        graphs = GraphSet(clique, np.ones((1, 1), np.float32), nodes, labels)
        fast.step(quotient(graphs).take(np.array([0, 0])), streams)
    pair = graphs.take(np.array([0, 0]))
    fast.evaluate(fast.levels(pair), pair.labels)
