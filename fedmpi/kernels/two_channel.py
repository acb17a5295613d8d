"""FedStar's network near the limit of one CPU core: forward, backward and evaluation, compiled.

The same function and gradient as `fedmpi.models.two_channel` with the same dropout masks. The structure
channel has one row for nodes of equal structure (`fedmpi.graphs.refinement.channels`), the GIN one per
twin class; the map that merges both channels, linear as the sum over nodes after it, is taken once per
graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.channels import (
    ChannelBatch,
    ChannelLevels,
    Structure,
    channel_batch,
    channel_levels,
)
from fedmpi.kernels.convolution import Added, Convolved, FastConvolution
from fedmpi.kernels.dropout import Counts, FastDropout
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.pooled_network import EmbeddingTerm, PooledNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.structure import FastStructure, StructureRows
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel, Slot
from fedmpi.models.options import FedStarOptions
from fedmpi.models.outcome import Outcome

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Layer:
    """What the backward pass needs of a convolution of the GIN."""

    convolved: Convolved
    kept: Counts


@dataclass(frozen=True)
class _Pooled:
    """Sums over the nodes of B graphs of both channels, and merged, float32 [B, h] each."""

    x: Floats
    s: Floats
    merged: Floats


class FastFedStar(PooledNetwork):
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : FedStarOptions
    model : FlatModel
        A `FedStarNetwork` on the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    """

    def __init__(self, options: FedStarOptions, model: FlatModel, scratch: Scratch) -> None:
        super().__init__(options.hidden, model, scratch)
        self._options = options
        maps = _Maps(model, options.hidden)
        layers = range(options.layers)
        self._inputs = maps.inputs("pre")
        self._structure = FastStructure(
            maps.inputs("structure.embed"),
            [maps.whole(f"structure.conv.{layer}") for layer in layers],
            [maps.of_structure(f"conv.{layer}.first") for layer in layers],
            scratch,
        )
        self._convolutions = [
            FastConvolution(
                layer,
                maps.of_features(f"conv.{layer}.first", bias=True),
                maps.whole(f"conv.{layer}.second"),
                scratch,
                relu=True,
                mapped=layer == 0,
            )
            for layer in layers
        ]
        self._merge = maps.of_features("merge", bias=False), maps.of_structure("merge")
        self._merge_bias, self._merge_bias_gradient = maps.bias("merge")
        self._dropout = FastDropout(options.hidden, self._width, options.dropout, scratch)
        head = maps.whole("post"), maps.whole("readout")
        self._head = FastHead(*head, options.layers, maps.outputs("readout"), self._dropout, scratch)

    def prepare(self, graphs: GraphSet) -> ChannelBatch:
        """Return graphs as `step` takes them, all or some of them."""
        return channel_batch(graphs, self._options.layers)

    def step(
        self, batch: ChannelBatch, streams: DropoutStreams, term: EmbeddingTerm | None = None
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
        """
        self._load()
        self._gradient[:] = 0
        rows = self._structure.forward(batch.structure)
        inputs = self._input_rows(batch.rows.inputs)
        layers, x = self._forward(batch, inputs, rows, streams)
        pooled = self._pool_and_merge(batch.rows.pooling, x, batch.structure, rows)
        outcome, upstream = self._head.step(pooled.merged, batch.rows.labels, streams)
        if term is not None:
            self._add_term(term, pooled.merged, upstream)
        of_x, of_s = self._merge_back(upstream, pooled, batch.structure)
        added = self._layers_back(batch, inputs, layers, of_x)
        self._structure.back(batch.structure, rows, of_s, added)
        return outcome

    def levels(self, graphs: GraphSet) -> ChannelLevels:
        """Return graphs as `evaluate` and `embed` take them."""
        return channel_levels(graphs, self._options.layers)

    def step_flops(self, batch: ChannelBatch) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        rows, width, later = batch.rows, self._width, self._options.layers - 1
        maps = (1 + 2 * later) * rows.num_rows + len(rows.inputs)
        sums = rows.first.num_entries + later * rows.closed.num_entries + rows.num_rows
        inputs, graphs = 2 * 2 * rows.inputs.size * width, 3 * self._graph_flops(len(rows.labels))
        structure = self._structure.flops(batch.structure, training=True)
        return inputs + 3 * 2 * maps * width**2 + 2 * 2 * sums * width + graphs + structure

    def evaluation_flops(self, graphs: ChannelLevels) -> int:
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

    def _pooled(self, graphs: ChannelLevels) -> Floats:
        self._load()
        rows = self._structure.forward(graphs.structure)
        x = self._input_rows(graphs.rows.inputs)
        for number, matrix in enumerate(graphs.rows.layers):
            added = Added(rows.added[number], graphs.colours[number])
            x = self._convolutions[number].evaluate(matrix, x, added)
        return self._pool_and_merge(graphs.rows.pooling, x, graphs.structure, rows).merged

    def _forward(
        self, batch: ChannelBatch, x: Floats, structure: StructureRows, streams: DropoutStreams
    ) -> tuple[list[_Layer], Floats]:
        """Return what each convolution of the GIN computed, and the sums over each last row's nodes."""
        rows, layers = batch.rows, []
        own = np.arange(rows.num_rows, dtype=np.int32)
        for number, convolution in enumerate(self._convolutions):
            matrix = rows.closed if number else rows.first
            done = convolution.apply(matrix, x, Added(structure.added[number], batch.colours[number]))
            kept = self._dropout.kept(
                f"kept {number}", streams, number, rows.member_ptr, rows.members, rows.largest_class
            )
            x = self._dropout.apply(done.out, own, kept, "dropped")
            layers.append(_Layer(done, kept))
        return layers, x

    def _layers_back(
        self, batch: ChannelBatch, x: Floats, layers: list[_Layer], upstream: Floats
    ) -> list[Floats]:
        """Store the GIN's gradients; return those of the structure channel's addend in each layer."""
        rows = batch.rows
        added: list[Floats] = []
        matrix, own = rows.pooling.transposed, np.arange(rows.num_rows, dtype=np.int32)
        for number, layer in reversed(list(enumerate(layers))):
            done = layer.convolved
            gradient = self._dropout.back(matrix, upstream, done.out, own, layer.kept, "out gradient")
            count = batch.structure.layers[number].num_rows
            added.insert(0, self._scratch(f"added gradient {number}", count, self._width))
            added[0][:] = 0
            upstream = self._convolutions[number].back(gradient, done, Added(added[0], batch.colours[number]))
            matrix = (rows.closed if number else rows.first).transposed
        inputs = self._convolutions[0].mapped_back(matrix, upstream, x)
        self._inputs.add_gradients_by_columns(inputs, rows.inputs)
        return added

    def _pool_and_merge(self, matrix: Csr, x: Floats, structure: Structure, rows: StructureRows) -> _Pooled:
        """Sum both channels over the nodes of graphs, and merge the sums."""
        of_x, of_s = self._sum(matrix, x, "pooled"), self._sum(structure.pooling, rows.s[-1], "pooled s")
        part, merged = (
            self._scratch(name, matrix.num_rows, self._width) for name in ("merged part", "merged")
        )
        for values, merge, out in zip((of_x, of_s), self._merge, (merged, part), strict=True):
            products.multiply(values, merge.transposed, out)
        merged += part
        merged[:, : self._options.hidden] += structure.sizes[:, None] * self._merge_bias
        return _Pooled(of_x, of_s, merged)

    def _merge_back(self, gradient: Floats, pooled: _Pooled, structure: Structure) -> tuple[Floats, Floats]:
        """Store the gradients of the merging map; return those of the sums of both channels."""
        gradients = []
        for name, merge, values in zip(("x", "s"), self._merge, (pooled.x, pooled.s), strict=True):
            merge.add_gradients(gradient, values)
            gradients.append(self._scratch(f"pooled gradient {name}", len(values), self._width))
            merge.apply_back(gradient, gradients[-1])
        of_bias = structure.sizes[:, None] * gradient[:, : self._options.hidden]
        self._merge_bias_gradient[:] = of_bias.sum(axis=0)
        return gradients[0], gradients[1]


class _Maps:
    """A network's linear maps by name."""

    def __init__(self, model: FlatModel, hidden: int) -> None:
        self._model, self._hidden = model, hidden
        self._slots = {slot.name: slot for slot in model.slots}

    def inputs(self, name: str) -> LinearMap:
        """Return a map of inputs of any width."""
        return LinearMap(self._model, *self._pair(name), padded_inputs=False)

    def whole(self, name: str) -> LinearMap:
        """Return a map of hidden rows."""
        return LinearMap(self._model, *self._pair(name))

    def of_features(self, name: str, *, bias: bool) -> LinearMap:
        """Return what a map of both channels makes of the GIN's, with its bias or without."""
        weight, shift = self._pair(name)
        return LinearMap(self._model, weight, shift if bias else None, columns=slice(self._hidden))

    def of_structure(self, name: str) -> LinearMap:
        """Return what a map of both channels makes of the structure channel, without bias."""
        columns = slice(self._hidden, None)
        return LinearMap(self._model, self._pair(name)[0], None, columns=columns)

    def bias(self, name: str) -> tuple[Floats, Floats]:
        """Return views of a bias and its gradient."""
        place = self._pair(name)[1]
        vectors = self._model.parameters.numpy(), self._model.gradient.numpy()
        return vectors[0][place.start : place.stop], vectors[1][place.start : place.stop]

    def outputs(self, name: str) -> int:
        """Return the number of a map's outputs."""
        return int(self._pair(name)[0].shape[0])

    def _pair(self, name: str) -> tuple[Slot, Slot]:
        return self._slots[f"{name}.weight"], self._slots[f"{name}.bias"]
