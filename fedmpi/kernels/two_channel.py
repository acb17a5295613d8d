"""FedStar's network near the limit of one CPU core: forward, backward and evaluation, compiled.

The same function and gradient as `fedmpi.models.two_channel` with the same dropout masks. The structure
channel has one row for nodes of equal structure (`fedmpi.graphs.refinement.channels`), the GIN one per
twin class; the map that merges both channels, linear as the sum over nodes after it, is taken once per
graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import Floats
from fedmpi.graphs.refinement import channels
from fedmpi.graphs.streams import Words
from fedmpi.kernels.convolution import Added, Convolved, FastConvolution
from fedmpi.kernels.dropout import Counts, FastDropout
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.linear_map import LinearMap, Loaded, views
from fedmpi.kernels.pooled_network import EmbeddingTerm, FastNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.structure import FastStructure, StructureRows
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import FedStarOptions
from fedmpi.models.outcome import Outcome

_Layer = tuple[Convolved, Counts]
"""What the backward pass needs of a convolution of the GIN."""


class FastFedStar(FastNetwork):
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : FedStarOptions
    model : FlatModel
        A `FedStarNetwork` on the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    kind : int
        Of the targets: see `fedmpi.kernels.targets`.
    """

    def __init__(self, options: FedStarOptions, model: FlatModel, scratch: Scratch, kind: int) -> None:
        super().__init__(options.hidden, model, scratch)
        self._options = options
        layers = range(options.layers)
        of_features, of_structure = slice(options.hidden), slice(options.hidden, None)
        self._inputs = LinearMap(model, "pre", padded_inputs=False)
        self._structure = FastStructure(
            LinearMap(model, "structure.embed", padded_inputs=False),
            [LinearMap(model, f"structure.conv.{layer}") for layer in layers],
            [LinearMap(model, f"conv.{layer}.first", bias=False, columns=of_structure) for layer in layers],
            scratch,
        )
        self._convolutions = [
            FastConvolution(
                layer,
                LinearMap(model, f"conv.{layer}.first", columns=of_features),
                LinearMap(model, f"conv.{layer}.second"),
                scratch,
                relu=True,
                mapped=layer == 0,
            )
            for layer in layers
        ]
        self._merge = [
            LinearMap(model, "merge", bias=False, columns=part) for part in (of_features, of_structure)
        ]
        self._merge_bias, self._merge_bias_gradient = views(model, "merge.bias")
        self._dropout = FastDropout(options.hidden, options.dropout, scratch)
        self._head = FastHead(model, options.layers, self._dropout.how, scratch, kind)

    def prepare(self, graphs: GraphSet) -> channels.ChannelBatch:
        """Return graphs as `step` takes them, all or some of them."""
        return channels.channel_batch(graphs, self._options.layers)

    def step(
        self,
        batch: channels.ChannelBatch,
        streams: DropoutStreams,
        term: EmbeddingTerm | None = None,
        *,
        alone: bool = False,
    ) -> Outcome:
        """Run forward and backward; the model's gradient becomes that of the mean loss and the term.

        Parameters
        ----------
        batch : ChannelBatch
            B graphs.
        streams : DropoutStreams
            The step's masks.
        term : callable, optional
            Of what is pooled and merged.
        alone : bool
            Whether it takes the place of the loss.
        """
        self._load()
        self._gradient[:] = 0
        rows = self._structure.forward(batch.structure)
        inputs = self._input_rows(batch.rows.inputs)
        keys = streams.keys(len(self._convolutions) + 1)
        layers, x = self._forward(batch, inputs, rows, keys)
        *pooled, merged = self._pool_and_merge(batch.rows.pooling, x, batch.structure, rows)
        outcome, upstream = self._head.step(merged, batch.rows.labels, keys)
        if term is not None:
            self._add_term(term, merged, upstream, alone=alone)
        of_x, of_s = self._merge_back(upstream, pooled, batch.structure)
        added = self._layers_back(batch, inputs, layers, of_x)
        self._structure.back(batch.structure, rows, of_s, added)
        return outcome

    def levels(self, graphs: GraphSet) -> channels.ChannelLevels:
        """Return graphs as `evaluate` and `embed` take them."""
        return channels.channel_levels(graphs, self._options.layers)

    def step_flops(self, batch: channels.ChannelBatch) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        rows, width, later = batch.rows, self._width, self._options.layers - 1
        maps = (1 + 2 * later) * rows.num_rows + len(rows.inputs)
        sums = rows.first.num_entries + later * rows.closed.num_entries + rows.num_rows
        inputs, graphs = 2 * 2 * rows.inputs.size * width, 3 * self._graph_flops(len(rows.labels))
        structure = self._structure.flops(batch.structure, training=True)
        return inputs + 3 * 2 * maps * width**2 + 2 * 2 * sums * width + graphs + structure

    def evaluation_flops(self, graphs: channels.ChannelLevels) -> int:
        """Return the FLOPs of `logits`."""
        rows, width = graphs.rows, self._width
        maps = len(rows.inputs) - rows.layers[0].num_rows + 2 * sum(m.num_rows for m in rows.layers)
        sums = sum(matrix.num_entries for matrix in (*rows.layers, rows.pooling))
        inputs, last = 2 * rows.inputs.size * width, self._graph_flops(rows.pooling.num_rows)
        structure = self._structure.flops(graphs.structure, training=False)
        return inputs + 2 * maps * width**2 + 2 * sums * width + last + structure

    def _graph_flops(self, graphs: int) -> int:
        """Return the FLOPs of what is done once per graph: merging, and the head."""
        return 2 * 2 * graphs * self._width**2 + self._head.flops(graphs)

    def _layers_to_load(self) -> list[Loaded]:
        return [self._structure, *self._convolutions, *self._merge]

    def _pooled(self, graphs: channels.ChannelLevels) -> Floats:
        self._load()
        rows = self._structure.forward(graphs.structure)
        x = self._input_rows(graphs.rows.inputs)
        for number, matrix in enumerate(graphs.rows.layers):
            added = Added(rows.added[number], graphs.colours[number])
            x = self._convolutions[number].evaluate(matrix, x, added)
        return self._pool_and_merge(graphs.rows.pooling, x, graphs.structure, rows)[-1]

    def _forward(
        self, batch: channels.ChannelBatch, x: Floats, structure: StructureRows, streams: Words
    ) -> tuple[list[_Layer], Floats]:
        """Return what each convolution of the GIN computed, and the sums over each last row's nodes."""
        rows, layers = batch.rows, []
        own = np.arange(rows.num_rows, dtype=np.int32)
        for number, convolution in enumerate(self._convolutions):
            matrix = rows.closed if number else rows.first
            done = convolution.apply(matrix, x, Added(structure.added[number], batch.colours[number]))
            x, kept = self._dropout.apply(number, streams, done.out, own, rows)
            layers.append((done, kept))
        return layers, x

    def _layers_back(
        self, batch: channels.ChannelBatch, x: Floats, layers: list[_Layer], upstream: Floats
    ) -> list[Floats]:
        """Store the GIN's gradients; return those of the structure channel's addend in each layer."""
        rows = batch.rows
        added: list[Floats] = []
        matrix, own = rows.pooling.transposed, np.arange(rows.num_rows, dtype=np.int32)
        for number, (done, kept) in reversed(list(enumerate(layers))):
            gradient = self._dropout.back(matrix, upstream, done.out, own, kept)
            count = batch.structure.layers[number].num_rows
            added.insert(0, self._scratch(f"added gradient {number}", count, self._width))
            added[0][:] = 0
            upstream = self._convolutions[number].back(gradient, done, Added(added[0], batch.colours[number]))
            matrix = (rows.closed if number else rows.first).transposed
        inputs = self._convolutions[0].mapped_back(matrix, upstream, x)
        self._inputs.add_gradients_by_columns(inputs, rows.inputs)
        return added

    def _pool_and_merge(
        self, matrix: Csr, x: Floats, structure: channels.Structure, rows: StructureRows
    ) -> tuple[Floats, Floats, Floats]:
        """Return the sums of both channels over the nodes of B graphs, and merged, float32 [B, h] each."""
        of_x, of_s = self._sum(matrix, x, "pooled"), self._sum(structure.pooling, rows.s[-1], "pooled s")
        part, merged = (
            self._scratch(name, matrix.num_rows, self._width) for name in ("merged part", "merged")
        )
        for values, merge, out in zip((of_x, of_s), self._merge, (merged, part), strict=True):
            products.multiply(values, merge.transposed, out)
        merged += part
        merged[:, : self._options.hidden] += structure.sizes[:, None] * self._merge_bias
        return of_x, of_s, merged

    def _merge_back(
        self, gradient: Floats, pooled: Sequence[Floats], structure: channels.Structure
    ) -> tuple[Floats, Floats]:
        """Store the gradients of the merging map; return those of the sums of both channels."""
        gradients = []
        for name, merge, values in zip(("x", "s"), self._merge, pooled, strict=True):
            merge.add_gradients(gradient, values)
            gradients.append(self._scratch(f"pooled gradient {name}", len(values), self._width))
            merge.apply_back(gradient, gradients[-1])
        of_bias = structure.sizes[:, None] * gradient[:, : self._options.hidden]
        self._merge_bias_gradient[:] = of_bias.sum(axis=0)
        return gradients[0], gradients[1]
