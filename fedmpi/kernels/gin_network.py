"""GIN without normalisation, compiled: a training step is a call forward, the head, and a call back.

The same function and gradient as `fedmpi.models.gin` with the same dropout masks; equal rows are computed
once (`fedmpi.graphs.refinement`).
"""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import TILE, Floats
from fedmpi.graphs.refinement.levels import Levels, levels
from fedmpi.graphs.refinement.quotient import Quotient, quotient
from fedmpi.graphs.streams import Drop
from fedmpi.kernels import gin_loops, gin_passes
from fedmpi.kernels.convolution import NOTHING
from fedmpi.kernels.gin_passes import Maps, Matrices, Room
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.pooled_network import EmbeddingTerm, FastNetwork
from fedmpi.kernels.scratch import Scratch, zeros
from fedmpi.models.dropout import DropoutStreams, reading
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinOptions
from fedmpi.models.outcome import Outcome


class FastGinNetwork(FastNetwork):
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : GinOptions
        Without normalisation.
    model : FlatModel
        On the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    kind : int
        Of the targets: see `fedmpi.kernels.targets`.
    """

    def __init__(self, options: GinOptions, model: FlatModel, scratch: Scratch, kind: int) -> None:
        super().__init__(options.hidden, model, scratch)
        self._depth, self._parameters = options.layers, model.parameters.numpy()
        self._inputs = LinearMap(model, "pre", padded_inputs=False)
        self._how = Drop(*reading(options.dropout), np.float32(1.0 / (1.0 - options.dropout)))
        self._head = FastHead(model, options.layers, self._how, scratch, kind)
        names = [f"conv.{layer}.{name}" for layer in range(options.layers) for name in ("first", "second")]
        places = [[model.by_name[f"{name}.{part}"].start for part in ("weight", "bias")] for name in names]
        self._starts = np.array(places)
        square, line = (len(names), self._width, self._width), (len(names), self._width)
        self._latest: tuple[Quotient, Matrices, Room] | None = None
        self._maps = Maps(*(zeros(*shape) for shape in (square, square, square, line, line)))

    def prepare(self, graphs: GraphSet) -> Quotient:
        """Return graphs as `step` takes them, all or some of them."""
        return quotient(graphs)

    def step(
        self,
        batch: Quotient,
        streams: DropoutStreams,
        term: EmbeddingTerm | None = None,
        *,
        alone: bool = False,
    ) -> Outcome:
        """Run forward and backward: see `FastNetwork.step`."""
        self._load()
        self._gradient[:] = 0
        (matrices, room), inputs = self._bound(batch), self._inputs.arrays
        keys = streams.keys(self._depth + 1)
        pooled = self._scratch("pooled", len(batch.labels), self._width)
        gin_passes.forward(matrices, inputs, self._maps, keys, self._how, self._hidden, room, pooled)
        outcome, gradient = self._head.step(pooled, batch.labels, keys)
        if term is not None:
            self._add_term(term, pooled, gradient, alone=alone)
        gin_passes.back(matrices, inputs, self._maps, self._how, room, gradient)
        self._inputs.store()
        gin_passes.store(self._maps, self._starts, self._hidden, self._gradient)
        return outcome

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them."""
        return levels(graphs, self._depth)

    def step_flops(self, batch: Quotient) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        rows = batch.first.num_rows + (self._depth - 1) * batch.num_rows
        entries = batch.first.num_entries + (self._depth - 1) * batch.closed.num_entries + batch.num_rows
        inputs, head = 2 * 2 * batch.inputs.size * self._width, 3 * self._head.flops(len(batch.labels))
        return inputs + 3 * 2 * 2 * rows * self._width**2 + 2 * 2 * entries * self._width + head

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `evaluate`."""
        rows = sum(matrix.num_rows for matrix in graphs.layers)
        entries = sum(matrix.num_entries for matrix in (*graphs.layers, graphs.pooling))
        inputs, head = 2 * graphs.inputs.size * self._width, self._head.flops(graphs.pooling.num_rows)
        return inputs + 2 * 2 * rows * self._width**2 + 2 * entries * self._width + head

    def load(self) -> None:
        """Take over the parameters of all layers."""
        gin_passes.load(self._parameters, self._starts, self._hidden, self._maps)

    def _layers_to_load(self) -> list[Loaded]:
        return [self]

    def _bound(self, batch: Quotient) -> tuple[Matrices, Room]:
        """Return a batch's matrices, and buffers for it; of the batch before, those that are there."""
        if self._latest is None or batch is not self._latest[0]:
            self._latest = batch, _matrices(batch), self._room(batch)
        return self._latest[1:]

    def _room(self, batch: Quotient) -> Room:
        scratch, depth, width = self._scratch, self._depth, self._width
        rows, most = batch.num_rows, max(batch.first.num_rows, batch.num_rows)
        summed, inner, out = (
            scratch(name, depth * most, width).reshape(depth, most, width)
            for name in ("summed", "inner", "out")
        )
        return Room(
            rows=scratch("input rows", len(batch.inputs), width),
            summed=summed,
            inner=inner,
            out=out,
            kept=scratch("kept", depth * rows, width, np.uint16).reshape(depth, rows, width),
            dropped=scratch("dropped", rows, width),
            gradient=scratch("out gradient", most, width),
            upstream=scratch("upstream", most, width),
        )

    def _pooled(self, graphs: Levels) -> Floats:
        self._load()
        x, maps = self._input_rows(graphs.inputs), self._maps
        tiles = self._scratch("tile a", TILE, self._width), self._scratch("tile b", TILE, self._width)
        for layer, matrix in enumerate(graphs.layers):
            out = self._scratch(f"level {layer % 2}", matrix.num_rows, self._width)
            first, second = 2 * layer, 2 * layer + 1
            gin_loops.convolve(
                *matrix.entries, x, maps.transposed[first], maps.biases[first], maps.transposed[second],
                maps.biases[second], *tiles, out, True, NOTHING.rows, NOTHING.of, False,
            )  # fmt: skip
            x = out
        return self._sum(graphs.pooling, x, "pooled")


def _matrices(batch: Quotient) -> Matrices:
    first, closed, pooling = batch.first, batch.closed, batch.pooling
    return Matrices(
        inputs=batch.inputs,
        first=first.entries,
        first_back=first.transposed.entries,
        closed=closed.entries,
        closed_back=closed.transposed.entries,
        pooling=pooling.entries,
        pooling_back=pooling.transposed.entries,
        first_of=batch.first_of,
        member_ptr=batch.member_ptr,
        members=batch.members,
    )
