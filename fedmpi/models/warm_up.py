"""Compiles the kernels of the fast GIN before rounds are timed."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.graphs.quotient import quotient
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.fast_gin import FastGin
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import GinOptions, Shape
from fedmpi.models.scratch import Scratch


def warm_up() -> None:
    """Compile every kernel of the fast GIN, or take it from the cache, on a pair and on many twins."""
    for norm in ("none", "batch", "graph"):
        _warm_up(GinOptions(hidden=16, layers=2, norm=norm))


def _warm_up(options: GinOptions) -> None:
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
