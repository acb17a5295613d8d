"""FedGraphNN's molecule models near the limit of one CPU core: whole local epochs, compiled.

The same function and gradient as `fedmpi.models.fedgraphnn` with the same dropout masks and the same
neighbours drawn. A graph goes through the model by itself, so that all of it stays in the innermost
caches, and a batch is the sum of its graphs' gradients. Parameters, gradient and moments are kept in
padded matrices for the length of an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedmpi.graphs.packed import GraphSet, pointers
from fedmpi.graphs.products import Floats
from fedmpi.graphs.sparse import transposed, with_self_loops
from fedmpi.graphs.streams import Drop
from fedmpi.kernels.molecules import arrays, steps
from fedmpi.kernels.molecules.layout import Layout, hidden_width
from fedmpi.kernels.molecules.room import executed, made
from fedmpi.kernels.scratch import zeros
from fedmpi.kernels.vectors import Descent
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams, fixed_keys, reading
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import FedGraphNNGatOptions, FedGraphNNOptions, FedGraphNNSageOptions


class Moments(NamedTuple):
    """First and second moment of an optimizer, in the flat model's order, float32 [length] each."""

    mean: Floats
    square: Floats


class FastMolecules:
    """Compiled passes of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : FedGraphNNOptions
    model : FlatModel
        On the CPU; its parameters are read and trained, its gradient is written.
    task : int
        Kind of the targets, see `fedmpi.kernels.targets`.
    """

    def __init__(self, options: FedGraphNNOptions, model: FlatModel, task: int) -> None:
        self._options, self._model = options, model
        self._layout = Layout(options, model)
        vector, gradient = (zeros(self._layout.length) for _ in range(2))
        self._network = arrays.Network(
            kind=_kind(options),
            task=task,
            hidden=hidden_width(options),
            outputs=model.slots[-1].shape[0],
            leak=np.float32(getattr(options, "slope", 0.0)),
            weights=self._layout.views(vector),
            transposed=self._layout.transposed(),
            gradients=self._layout.views(gradient),
            vector=vector,
            gradient=gradient,
        )
        self._moments = Moments(zeros(len(vector)), zeros(len(vector)))
        bits, threshold = reading(options.dropout)
        self._drop = Drop(bits, threshold, np.float32(1.0 / (1.0 - options.dropout)))
        self._room = (0, 0)
        self._work = made(options, self._network, self._layout.width, *self._room)

    def molecules(self, graphs: GraphSet, targets: np.ndarray) -> arrays.Molecules:
        """Return graphs as the passes take them; targets float64 [G, T]."""
        row_ptr, columns = with_self_loops(graphs.topology)
        node_ptr = graphs.topology.graph_ptr
        sizes = np.diff(node_ptr)
        entries = row_ptr[node_ptr[1:]] - row_ptr[node_ptr[:-1]]
        self._make_room(int(sizes.max(initial=1)), int(entries.max(initial=1)))
        starts = np.repeat(node_ptr[:-1], sizes)
        receivers = np.repeat(np.arange(len(row_ptr) - 1), np.diff(row_ptr))
        features = np.ascontiguousarray(graphs.features)
        ready = arrays.Molecules(
            node_ptr=np.ascontiguousarray(node_ptr, np.int64),
            pointers=row_ptr.astype(np.int32),
            columns=(columns - starts[receivers]).astype(np.int32),
            weights=np.zeros(0, np.float32),
            back_pointers=np.zeros(0, np.int32),
            back_columns=np.zeros(0, np.int32),
            back_weights=np.zeros(0, np.float32),
            inputs=features,
            features=features,
            targets=np.ascontiguousarray(targets, np.float64),
        )
        if self._network.kind != arrays.GCN:
            return ready
        roots = 1 / np.sqrt(np.diff(row_ptr).astype(np.float32))
        weights = roots[receivers] * roots[columns]
        back_ptr, back_columns, order = transposed(row_ptr, columns)
        return ready._replace(
            weights=weights,
            back_pointers=back_ptr.astype(np.int32),
            back_columns=(back_columns - starts[columns[order]]).astype(np.int32),
            back_weights=weights[order],
            inputs=_combined(row_ptr, columns, weights, features),
        )

    def train(
        self,
        graphs: arrays.Molecules,
        batches: Sequence[arrays.Longs],
        streams: Sequence[DropoutStreams],
        descent: Descent,
        moments: Moments,
    ) -> arrays.GraphResults:
        """Take a step for each batch; parameters, gradient and moments become those after the last.

        Parameters
        ----------
        batches : sequence of int64 [*]
            Numbers of the graphs of each batch.
        streams : sequence of DropoutStreams
            Of each step.
        descent : Descent
            The steps' numbers.
        moments : Moments
            Of the optimizer.
        """
        plan, results = self._plan(batches, streams)
        network, trained = self._load(), slice(len(moments.mean))
        for flat, vector in zip(moments, self._moments, strict=True):
            self._layout.pack(flat, vector)
        steps.train(graphs, plan, self._drop, network, descent, *self._moments, self._work, results)
        for flat, vector in zip(moments, self._moments, strict=True):
            self._layout.unpack(vector, flat)
        self._layout.unpack(network.vector, self._model.parameters.numpy()[trained])
        self._layout.unpack(network.gradient, self._model.gradient.numpy()[trained])
        return results

    def step(
        self, graphs: arrays.Molecules, batch: arrays.Longs, streams: DropoutStreams
    ) -> arrays.GraphResults:
        """Set the model's gradient to that of the mean loss of a batch."""
        plan, results = self._plan([batch], [streams])
        network = self._load()
        steps.set_gradient(graphs, plan, 0, self._drop, network, self._work, results)
        self._layout.unpack(network.gradient, self._model.gradient.numpy())
        return results

    def evaluate(self, graphs: arrays.Molecules, parts: Sequence[arrays.Longs]) -> arrays.GraphResults:
        """Run the graphs of each part forward, without dropout."""
        plan, results = self._plan(parts, None)
        steps.evaluate(graphs, plan, self._drop, self._load(), self._work, results)
        return results

    def flops(self, counts: GraphCounts, *, training: bool) -> int:
        """Return the FLOPs of the compiled passes over these graphs, with what padding adds."""
        return executed(self._network, self._layout.width, counts, training=training)

    def _load(self) -> arrays.Network:
        """Bring the padded parameters up to date."""
        self._layout.pack(self._model.parameters.numpy(), self._network.vector)
        return self._network

    def _plan(
        self, batches: Sequence[arrays.Longs], streams: Sequence[DropoutStreams] | None
    ) -> tuple[arrays.Plan, arrays.GraphResults]:
        count = arrays.STREAMS[self._network.kind]
        if streams is None:
            keys = np.tile(fixed_keys(count), (len(batches), 1))
        else:
            keys = np.array([each.keys(count) for each in streams], np.uint64).reshape(-1, count)
        order = np.concatenate([np.zeros(0, np.int64), *batches])
        results = arrays.GraphResults(
            np.zeros(len(order)),
            np.zeros((len(order), self._network.outputs), np.float32),
            np.zeros((len(order) if streams is None else 0, self._options.graph), np.float32),
        )
        return arrays.Plan(order, pointers([len(batch) for batch in batches]), keys), results

    def _make_room(self, nodes: int, entries: int) -> None:
        if nodes > self._room[0] or entries > self._room[1]:
            self._room = (max(nodes, self._room[0]), max(entries, self._room[1]))
            self._work = made(self._options, self._network, self._layout.width, *self._room)


def _kind(options: FedGraphNNOptions) -> int:
    match options:
        case FedGraphNNGatOptions():
            return arrays.GAT
        case FedGraphNNSageOptions():
            return arrays.SAGE
        case _:
            return arrays.GCN


def _combined(row_ptr: np.ndarray, columns: np.ndarray, weights: Floats, x: Floats) -> Floats:
    """Return a sparse matrix, whose rows all have entries, times `x`."""
    if not len(columns):
        return x
    combined: Floats = np.add.reduceat(x[columns] * weights[:, None], row_ptr[:-1], axis=0)
    return combined
