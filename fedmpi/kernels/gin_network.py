"""GIN without normalisation, compiled: an epoch is one call.

The same function and gradient as `fedmpi.models.gin` with the same dropout masks; equal rows are computed
once (`fedmpi.graphs.refinement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import le
from typing import Any

import numpy as np

from fedmpi.graphs.packed import GraphSet, pointers
from fedmpi.graphs.products import TILE, Floats
from fedmpi.graphs.refinement.levels import Levels, levels
from fedmpi.graphs.streams import Drop
from fedmpi.kernels import gin_loops, gin_passes
from fedmpi.kernels.convolution import NOTHING
from fedmpi.kernels.gin_batch import GinBatch
from fedmpi.kernels.gin_passes import Maps, Room
from fedmpi.kernels.gin_steps import (
    BACK,
    COUNTS,
    ENTRIES,
    FIRST_ENTRIES,
    FIRST_ROWS,
    FORWARD,
    GRADIENT,
    GRAPHS,
    INPUTS,
    ROWS,
    TRAINING,
    HeadRoom,
    Network,
    Plan,
    Results,
    run,
)
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.pooled_network import EmbeddingTerm, FastNetwork
from fedmpi.kernels.scratch import Scratch, zeros
from fedmpi.kernels.targets import CLASSES
from fedmpi.kernels.vectors import Descent
from fedmpi.models.dropout import DropoutStreams, reading
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinOptions
from fedmpi.models.outcome import Outcome

_ONE, _NONE = np.float32(1), np.zeros(0, np.float32)
_NO_STEPS = Descent(False, _ONE, _ONE, _ONE, _ONE, _ONE, np.float64(0), _NONE, _NONE)


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

    descends = True

    def __init__(self, options: GinOptions, model: FlatModel, scratch: Scratch, kind: int) -> None:
        super().__init__(options.hidden, model, scratch)
        self._depth, self._kind = options.layers, kind
        self._inputs = LinearMap(model, "pre", padded_inputs=False)
        how = Drop(*reading(options.dropout), np.float32(1.0 / (1.0 - options.dropout)))
        self._head = FastHead(model, options.layers, how, scratch, kind)
        names = [f"conv.{layer}.{name}" for layer in range(options.layers) for name in ("first", "second")]
        square, line = (len(names), self._width, self._width), (len(names), self._width)
        self._maps = Maps(*(zeros(*shape) for shape in (square, square, square, line, line)))
        places = [_place(model, name) for name in ("pre", "post", "readout")]
        self._network = Network(
            parameters=model.parameters.numpy(),
            gradient=self._gradient,
            starts=np.array([_place(model, name)[:2] for name in names]),
            maps=self._maps,
            pre=self._inputs.arrays,
            post=self._head.maps[0].arrays,
            readout=self._head.maps[1].arrays,
            places=np.array(places),
            hidden=self._hidden,
            kind=kind,
            how=how,
        )
        self._idle = np.zeros((2, model.trained), np.float32)
        self._space: tuple[int, ...] = (0, 0, 0)
        self._room: Room
        self._head_room: HeadRoom

    def prepare(self, graphs: GraphSet) -> GinBatch:
        """Return graphs as `step` takes them, all or some of them."""
        return GinBatch.of(graphs)

    def step(
        self,
        batch: GinBatch,
        streams: DropoutStreams,
        term: EmbeddingTerm | None = None,
        *,
        alone: bool = False,
    ) -> Outcome:
        """Run forward and backward: see `FastNetwork.step`."""
        plan, results = self._plan([batch], [streams])
        head = self._head_room
        rest = self._network, self._room, head, _NO_STEPS, *self._idle, results
        graphs = batch.ready if plan.whole else batch.graphs
        run(GRADIENT if term is None else FORWARD, graphs, plan, *rest)
        if term is not None:
            size = len(plan.order)
            self._add_term(term, head.pooled[:size], head.before[:size], alone=alone)
            run(BACK, graphs, plan, *rest)
        batch.counts = results.counts[0].tolist()
        return self._outcomes(batch, plan, results)[0]

    def descend(
        self,
        batches: Sequence[GinBatch],
        streams: Sequence[DropoutStreams],
        descent: Descent,
        mean: Floats,
        square: Floats,
    ) -> list[Outcome]:
        """Take a step of the optimizer for each batch: see `FastNetwork.descend`."""
        plan, results = self._plan(batches, streams)
        graphs, rooms = batches[0].ready if plan.whole else batches[0].graphs, (self._room, self._head_room)
        run(TRAINING, graphs, plan, self._network, *rooms, descent, mean, square, results)
        for batch, counts in zip(batches, results.counts.tolist(), strict=True):
            batch.counts = counts
        return self._outcomes(batches[0], plan, results)

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them."""
        return levels(graphs, self._depth)

    def step_flops(self, batch: GinBatch) -> int:
        """Return the FLOPs of the step that was taken: products and sums over stored entries, both ways."""
        of, width = batch.counts, self._width
        rows = of[FIRST_ROWS] + (self._depth - 1) * of[ROWS]
        entries = of[FIRST_ENTRIES] + (self._depth - 1) * of[ENTRIES] + of[ROWS]
        inputs, head = (
            2 * 2 * of[INPUTS] * self._network.places[0, 3] * width,
            3 * self._head.flops(of[GRAPHS]),
        )
        return int(inputs + 3 * 2 * 2 * rows * width**2 + 2 * 2 * entries * width + head)

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `evaluate`."""
        rows = sum(matrix.num_rows for matrix in graphs.layers)
        entries = sum(matrix.num_entries for matrix in (*graphs.layers, graphs.pooling))
        inputs, head = 2 * graphs.inputs.size * self._width, self._head.flops(graphs.pooling.num_rows)
        return inputs + 2 * 2 * rows * self._width**2 + 2 * entries * self._width + head

    def load(self) -> None:
        """Take over the parameters of all layers."""
        gin_passes.load(self._network.parameters, self._network.starts, self._hidden, self._maps)

    def _layers_to_load(self) -> list[Loaded]:
        return [self]

    def _plan(self, batches: Sequence[GinBatch], streams: Sequence[DropoutStreams]) -> tuple[Plan, Results]:
        """Return what the steps take, and where their results go."""
        first = batches[0]
        numbers = [each.numbers for each in batches if each.numbers is not None]
        whole = not numbers
        chosen = numbers or [np.arange(len(first.graphs.targets))] * len(batches)
        order, sizes = np.concatenate(chosen), [len(each) for each in chosen]
        keys = np.array([each.keys(self._depth + 1) for each in streams], np.uint64)
        count, outputs = len(order), self._head.maps[1].width
        results = Results(
            np.empty(count),
            np.zeros(count, np.uint8),
            np.empty((count, outputs), np.float32),
            np.empty((len(batches), COUNTS), np.int64),
        )
        self._make_room(len(first.whole.inputs), max(each.most_rows for each in batches), max(sizes))
        return Plan(order, pointers(sizes), keys, whole), results

    def _outcomes(self, batch: GinBatch, plan: Plan, results: Results) -> list[Outcome]:
        """Return what each step found."""
        cuts = [slice(*both) for both in pairwise(plan.starts.tolist())]
        if self._kind == CLASSES:
            return [Outcome(results.losses[cut], results.hits[cut]) for cut in cuts]
        known = (~np.isnan(batch.graphs.targets[plan.order])).sum(axis=1)
        scores = results.logits[:, : self._head.maps[1].outputs].copy()
        return [Outcome(results.losses[cut], results.hits[cut], known[cut], scores[cut]) for cut in cuts]

    def _make_room(self, *needed: int) -> None:
        """Have buffers for steps of so many feature rows, rows and graphs."""
        if all(map(le, needed, self._space)):
            return
        self._space = inputs, rows, graphs = tuple(map(max, needed, self._space))
        scratch, depth, width = self._scratch, self._depth, self._width
        summed, inner, out = (
            scratch(name, depth * rows, width).reshape(depth, rows, width)
            for name in ("summed", "inner", "out")
        )
        self._room = Room(
            rows=scratch("input rows", inputs, width),
            summed=summed,
            inner=inner,
            out=out,
            kept=scratch("kept", depth * rows, width, np.uint16).reshape(depth, rows, width),
            dropped=scratch("dropped", rows, width),
            gradient=scratch("out gradient", rows, width),
            upstream=scratch("upstream", rows, width),
        )
        pooled, hidden, dropped, between, before = (
            scratch(f"{name} in head", graphs, width)
            for name in ("pooled", "hidden", "dropped", "between", "before")
        )
        kept: Any = scratch("kept in head", graphs, width, np.uint16)
        gradient = scratch("logits gradient", graphs, self._head.maps[1].width)
        self._head_room = HeadRoom(pooled, hidden, kept, dropped, between, before, gradient)

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


def _place(model: FlatModel, name: str) -> tuple[int, int, int, int]:
    """Return where weight and bias of a linear map begin in a model, and its outputs and inputs."""
    weight, bias = (model.by_name[f"{name}.{part}"] for part in ("weight", "bias"))
    return weight.start, bias.start, weight.shape[0], weight.shape[1]
