"""Networks that are compiled layer by layer: normalised GIN, GCN, GAT, GraphSAGE, SGC and MPNN.

Layers, ReLU, dropout, pooling, a head of one or two Linears.
The same functions and gradients as `fedmpi.models.gin` and `fedmpi.models.message_passing` with the same
dropout masks; equal rows are computed once (`fedmpi.graphs.refinement`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.products import Floats
from fedmpi.graphs.refinement import weighted
from fedmpi.graphs.refinement.levels import Levels, levels
from fedmpi.graphs.refinement.quotient import Quotient, quotient
from fedmpi.graphs.streams import Words
from fedmpi.kernels.attention import FastAttention
from fedmpi.kernels.dropout import Counts, FastDropout
from fedmpi.kernels.gin import FastGin
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.layers import FastPropagation, FastSums, Layer, Layered, matrices_of
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.messages import FastMessages
from fedmpi.kernels.node_head import FastReadout
from fedmpi.kernels.pooled_network import EmbeddingTerm, FastNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.models import options as models
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome

_PREPARED: dict[str, tuple[Callable[[GraphSet], Quotient], Callable[[GraphSet, int], Levels]]] = {
    "gin": (quotient, levels),
    "gcn": (weighted.normalised_quotient, weighted.normalised_levels),
    "sgc": (weighted.normalised_quotient, weighted.normalised_levels),
    "sage": (weighted.mean_quotient, weighted.mean_levels),
    "gat": (weighted.attention_quotient, weighted.attention_levels),
    "mpnn": (weighted.message_quotient, weighted.message_levels),
}
"""Graphs for training and for evaluation, by the model's name."""

OfNetwork = models.GinOptions | models.MessagePassingOptions


_Passed = tuple[Floats, Layered, Counts]
"""What the backward pass needs of a layer: its input, what it kept, what dropout left of its output."""


class FastGraphNetwork(FastNetwork):
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : GinOptions or MessagePassingOptions
        With a head of one or two layers.
    model : FlatModel
        On the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    kind : int
        Of the targets: see `fedmpi.kernels.targets`.
    """

    _one_layer: ClassVar[type[FastReadout]] = FastReadout
    _two_layers: ClassVar[type[FastHead]] = FastHead

    def __init__(self, options: OfNetwork, model: FlatModel, scratch: Scratch, kind: int) -> None:
        super().__init__(options.hidden, model, scratch)
        self._options = options
        self._by_mean = isinstance(options, models.MessagePassingOptions) and options.pooling == "mean"
        self._inputs = LinearMap(model, "pre", padded_inputs=False)
        count = 1 if isinstance(options, models.SgcOptions) else options.layers
        self._layers: list[Layer] = [_layer(options, number, model, scratch) for number in range(count)]
        self._dropout = FastDropout(options.hidden, options.dropout, scratch)
        self._head = (
            self._one_layer(model, scratch, kind)
            if getattr(options, "head_layers", 2) == 1
            else self._two_layers(model, count, self._dropout.how, scratch, kind)
        )

    def prepare(self, graphs: GraphSet) -> Quotient:
        """Return graphs as `step` takes them, all or some of them."""
        return _PREPARED[self._options.name][0](graphs)

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
        keys = streams.keys(len(self._layers) + 1)
        passed, last = self._forward(batch, keys)
        matrix, pooled = batch.pooling.transposed, self._sum(batch.pooling, last, "pooled")
        means = _inverse(np.diff(batch.node_ptr))[:, None] if self._by_mean else None
        if means is not None:
            pooled *= means
        outcome, upstream = self._head.step(pooled, batch.labels, keys)
        if term is not None:
            self._add_term(term, pooled, upstream, alone=alone)
        if means is not None:
            upstream *= means
        for number in reversed(range(len(passed))):
            x, done, kept = passed[number]
            gradient = self._dropout.back(matrix, upstream, done.out, done.row_of, kept)
            matrix, upstream = self._layers[number].back(number, batch.at(number), gradient, x, done)
        rows = self._sum(matrix, upstream, "input gradient")
        self._inputs.add_gradients_by_columns(rows, batch.inputs)
        return outcome

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them; pooled to means where the model does so."""
        options, depth = self._options, self._options.layers
        if isinstance(options, models.GinOptions) and "graph" in options.norms:
            return levels(graphs, depth, by_graph=True)
        whole = _PREPARED[options.name][1](graphs, depth)
        if not self._by_mean:
            return whole
        lengths, pooling = np.diff(graphs.topology.graph_ptr), whole.pooling
        means = np.repeat(_inverse(lengths), np.diff(pooling.pointers))
        return replace(whole, pooling=replace(pooling, weights=pooling.weights * means))

    def step_flops(self, batch: Quotient) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        layers = [
            sum(layer.flops(matrices_of(number, batch.at(number), layer.steps), batch.at(number).bonds))
            for number, layer in enumerate(self._layers)
        ]
        inputs, head = 2 * 2 * batch.inputs.size * self._width, 3 * self._head.flops(batch.pooling.num_rows)
        norms = sum(layer.norm_flops[1] for layer in self._layers)
        pooling = (2 * 2 * batch.pooling.num_entries + norms * batch.num_rows) * self._width
        return inputs + sum(layers) + head + pooling

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `evaluate`."""
        layers, first = [], 0
        for layer in self._layers:
            matrices = graphs.layers[first : first + layer.steps]
            norms = layer.norm_flops[0] * matrices[-1].num_rows * self._width
            layers.append(layer.flops(matrices, graphs.bonds)[0] + norms)
            first += layer.steps
        inputs, head = 2 * graphs.inputs.size * self._width, self._head.flops(graphs.pooling.num_rows)
        return inputs + sum(layers) + head + 2 * graphs.pooling.num_entries * self._width

    def _layers_to_load(self) -> list[Layer]:
        return self._layers

    def _forward(self, batch: Quotient, streams: Words) -> tuple[list[_Passed], Floats]:
        """Return what each layer computed, and what dropout leaves of the last, [Q, h]."""
        x, passed = self._input_rows(batch.inputs), []
        for number, layer in enumerate(self._layers):
            rows = batch.at(number)
            done = layer.apply(number, rows, x)
            into = f"dropped {number}" if layer.keeps_input else "dropped"
            following, kept = self._dropout.apply(number, streams, done.out, done.row_of, rows, into)
            passed.append((x, done, kept))
            x = following
        return passed, x

    def _pooled(self, graphs: Levels) -> Floats:
        self._load()
        x, first = self._input_rows(graphs.inputs), 0
        for number, layer in enumerate(self._layers):
            x, first = layer.evaluate(number, graphs, first, x), first + layer.steps
        return self._sum(graphs.pooling, x, "pooled")


def _layer(options: OfNetwork, number: int, model: FlatModel, scratch: Scratch) -> Layer:
    """Return the layer of a number, bound to its tensors."""
    name = f"conv.{number}"
    match options:
        case models.GinOptions():
            return FastGin(number, options.norms, model, scratch)
        case models.SageOptions():
            maps = [LinearMap(model, f"{name}.lin_l"), LinearMap(model, f"{name}.lin_r", bias=False)]
            return FastSums(maps, scratch)
        case models.GatOptions():
            return FastAttention(model, name, options.slope, scratch)
        case models.MpnnOptions():
            return FastMessages(model, name, scratch)
        case models.SgcOptions():
            return FastPropagation([LinearMap(model, f"{name}.lin")], scratch, options.layers)
        case _:
            return FastSums([LinearMap(model, f"{name}.lin", bias=f"{name}.bias")], scratch)


def _inverse(sizes: Int) -> Floats:
    """Return one over each number of nodes; 1 for graphs without any."""
    return (1 / np.maximum(sizes, 1).astype(np.float32)).astype(np.float32)
