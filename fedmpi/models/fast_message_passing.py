"""GCN, GraphSAGE and SGC compiled: weighted sums over neighbours, one linear map per layer, ReLU and dropout.

The same functions and gradients as `fedmpi.models.message_passing` with the same dropout masks; equal
rows are computed once (`fedmpi.graphs.weighted_quotient`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fedmpi.graphs import weighted_quotient as weighted
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.levels import Levels
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import padded
from fedmpi.graphs.quotient import Quotient
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.fast_convolution import multiply
from fedmpi.models.fast_dropout import Counts, FastDropout
from fedmpi.models.fast_head import FastHead
from fedmpi.models.flat import FlatModel
from fedmpi.models.linear_map import LinearMap, Loaded
from fedmpi.models.norm_kernels import add_rows
from fedmpi.models.options import GcnOptions, SageOptions, SgcOptions
from fedmpi.models.outcome import Outcome
from fedmpi.models.scratch import Scratch

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Layer:
    """What the backward pass needs of a layer; row q's activations are ``out[row_of[q]]``.

    `sums` [parts n, h] are what the linear maps took, one part for each map.
    """

    sums: Floats
    out: Floats
    row_of: Ints
    kept: Counts


class FastGraphNetwork:
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : GcnOptions, SageOptions or SgcOptions
        With a head of two layers.
    model : FlatModel
        On the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    """

    def __init__(
        self, options: GcnOptions | SageOptions | SgcOptions, model: FlatModel, scratch: Scratch
    ) -> None:
        self._options, self._width, self._scratch = options, padded(options.hidden), scratch
        self._gradient = model.gradient.numpy()
        self._steps = options.layers if isinstance(options, SgcOptions) else 1
        slots = {slot.name: slot for slot in model.slots}

        def linear(weight: str, bias: str | None) -> LinearMap:
            return LinearMap(model, slots[weight], slots[bias] if bias else None)

        self._inputs = LinearMap(model, slots["pre.weight"], slots["pre.bias"], padded_inputs=False)
        self._maps = []
        for layer in range(1 if isinstance(options, SgcOptions) else options.layers):
            at = f"conv.{layer}."
            if isinstance(options, SageOptions):
                both = (at + "lin_l.weight", at + "lin_l.bias"), (at + "lin_r.weight", None)
                self._maps.append([linear(*names) for names in both])
            else:
                bias = "bias" if isinstance(options, GcnOptions) else "lin.bias"
                self._maps.append([linear(at + "lin.weight", at + bias)])
        self._dropout = FastDropout(options.hidden, self._width, options.dropout, scratch)
        post, readout = (linear(f"{name}.weight", f"{name}.bias") for name in ("post", "readout"))
        classes = slots["readout.bias"].shape[0]
        self._head = FastHead(post, readout, len(self._maps), classes, self._dropout, scratch)

    def prepare(self, graphs: GraphSet) -> Quotient:
        """Return graphs as `step` takes them, all or some of them."""
        if isinstance(self._options, SageOptions):
            return weighted.mean_quotient(graphs)
        return weighted.normalised_quotient(graphs)

    def step(self, batch: Quotient, streams: DropoutStreams) -> Outcome:
        """Run forward and backward; the model's gradient becomes that of the mean loss."""
        self._load()
        self._gradient[:] = 0
        layers, last = self._forward(batch, streams)
        matrix, means = batch.pooling.transposed, self._means(batch)
        pooled = self._pool(batch.pooling, last)
        pooled *= means
        outcome, upstream = self._head.step(pooled, batch.labels, streams)
        upstream *= means
        for number, layer in reversed(list(enumerate(layers))):
            upstream = self._layer_back(number, layer, matrix, upstream)
            if self._steps > 1:
                upstream = self._propagate_back(batch, upstream)
            matrix = (batch.closed if number else batch.first).transposed
        rows = self._scratch("input gradient", matrix.num_rows, self._width)
        multiply(matrix, upstream, rows)
        self._inputs.add_gradients_by_columns(rows, batch.inputs)
        return outcome

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them; pooled to means where the model does so."""
        kind = weighted.mean_levels if isinstance(self._options, SageOptions) else weighted.normalised_levels
        found = kind(graphs, self._options.layers)
        if self._options.pooling == "sum":
            return found
        lengths, pooling = np.diff(graphs.topology.graph_ptr), found.pooling
        means = np.repeat(_inverse(lengths), np.diff(pooling.pointers))
        return replace(found, pooling=replace(pooling, weights=pooling.weights * means))

    def evaluate(self, graphs: Levels, labels: npt.NDArray[np.int64]) -> Outcome:
        """Classify graphs without dropout; labels int64 [B]."""
        return self._head.evaluate(self._pooled(graphs), labels)

    def logits(self, graphs: Levels) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        return self._head.logits(self._pooled(graphs))

    def embed(self, graphs: Levels) -> Floats:
        """Return what is pooled of each graph without dropout, float32 [B, h]."""
        return self._pooled(graphs)[:, : self._options.hidden]

    def step_flops(self, batch: Quotient) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        further = (len(self._maps) + self._steps - 2) * batch.closed.num_entries
        sums = batch.first.num_entries + further + batch.num_rows
        mapped = [batch.first if number == 0 else batch.closed for number in range(len(self._maps))]
        rows = sum(matrix.num_rows for matrix in mapped) if self._steps == 1 else batch.num_rows
        width, inputs = self._width, 2 * 2 * batch.inputs.size * self._width
        head = 3 * self._head.flops(batch.pooling.num_rows)
        return inputs + 3 * 2 * rows * width * width + head + 2 * 2 * sums * width

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `evaluate`."""
        mapped = graphs.layers if self._steps == 1 else graphs.layers[-1:]
        rows = sum(matrix.num_rows for matrix in mapped)
        sums = sum(matrix.num_entries for matrix in (*graphs.layers, graphs.pooling))
        width, head = self._width, self._head.flops(graphs.pooling.num_rows)
        return 2 * graphs.inputs.size * width + 2 * rows * width * width + head + 2 * sums * width

    def _load(self) -> None:
        maps: list[Loaded] = [self._inputs, self._head, *(each for maps in self._maps for each in maps)]
        for part in maps:
            part.load()

    def _means(self, batch: Quotient) -> Floats:
        """Return what each graph's sum over nodes is multiplied by, float32 [B, 1]."""
        sizes = np.diff(batch.node_ptr)
        return (_inverse(sizes) if self._options.pooling == "mean" else np.ones(len(sizes), np.float32))[
            :, None
        ]

    def _input_rows(self, inputs: Floats) -> Floats:
        rows = self._scratch("input rows", len(inputs), self._width)
        self._inputs.apply(inputs, rows, cut=False)
        return rows

    def _pool(self, matrix: Csr, x: Floats) -> Floats:
        pooled = self._scratch("pooled", matrix.num_rows, self._width)
        multiply(matrix, x, pooled)
        return pooled

    def _sums(self, name: str, matrix: Csr, x: Floats) -> Floats:
        found = self._scratch(name, matrix.num_rows, self._width)
        multiply(matrix, x, found)
        return found

    def _map(self, maps: list[LinearMap], sums: Floats, out: Floats) -> None:
        """Set `out` [n, h] to the maps of their parts of `sums`, added and cut at 0."""
        first, *others = maps
        count = len(out)
        first.apply(sums[:count], out, cut=not others)
        for number, other in enumerate(others, 1):
            part = self._scratch("mapped part", count, self._width)
            other.apply(sums[number * count : (number + 1) * count], part, cut=False)
            np.maximum(np.add(out, part, out=out), 0, out=out)

    def _forward(self, batch: Quotient, streams: DropoutStreams) -> tuple[list[_Layer], Floats]:
        """Return what each layer computed, and what dropout leaves of the last, [Q, h]."""
        x, layers = self._input_rows(batch.inputs), []
        own = np.arange(batch.num_rows, dtype=np.int32)
        for number, maps in enumerate(self._maps):
            matrix, row_of = (batch.closed, own) if number else (batch.first, batch.first_of)
            sums = self._sums(f"sums {number}", matrix, x)
            if self._steps > 1:
                sums, row_of = self._propagate(batch, sums), own
            out = self._scratch(f"out {number}", len(sums) // len(maps), self._width)
            self._map(maps, sums, out)
            kept = self._dropout.kept(
                f"kept {number}", streams, number, batch.member_ptr, batch.members, batch.largest_class
            )
            x = self._dropout.apply(out, row_of, kept, "dropped")
            layers.append(_Layer(sums, out, row_of, kept))
        return layers, x

    def _propagate(self, batch: Quotient, sums: Floats) -> Floats:
        """Take SGC's further sums, from the first layer's classes on; [Q, h]."""
        counts, rows = batch.counts[:, None], sums[batch.first_of]
        for step in range(1, self._steps):
            rows = self._sums(f"propagated {step % 2}", batch.closed, rows * counts)
        return rows

    def _propagate_back(self, batch: Quotient, gradient: Floats) -> Floats:
        """Return the gradient of the first sums from that of the last."""
        counts = batch.counts[:, None]
        for step in range(1, self._steps):
            gradient = self._sums(f"propagated back {step % 2}", batch.closed.transposed, gradient) * counts
        found = np.zeros((batch.first.num_rows, self._width), np.float32)
        add_rows(gradient, batch.first_of, found)
        return found

    def _layer_back(self, number: int, layer: _Layer, matrix: Csr, upstream: Floats) -> Floats:
        """Return the gradient of a layer's sums from that of the rows that read its output."""
        gradient = self._dropout.back(matrix, upstream, layer.out, layer.row_of, layer.kept, "out gradient")
        found = self._scratch(f"sums gradient {number % 2}", len(layer.sums), self._width)
        for place, part in enumerate(self._maps[number]):
            rows = slice(place * len(gradient), (place + 1) * len(gradient))
            part.add_gradients(gradient, layer.sums[rows])
            part.apply_back(gradient, found[rows])
        return found

    def _pooled(self, graphs: Levels) -> Floats:
        self._load()
        x, maps = self._input_rows(graphs.inputs), list(self._maps)
        for number, matrix in enumerate(graphs.layers):
            x = self._sums(f"level sums {number % 2}", matrix, x)
            if self._steps == 1 or number + 1 == self._steps:
                own = maps.pop(0)
                out = self._scratch(f"level {number % 2}", len(x) // len(own), self._width)
                self._map(own, x, out)
                x = out
        return self._pool(graphs.pooling, x)


def _inverse(sizes: npt.NDArray[np.int64]) -> Floats:
    """Return one over each number of nodes; 1 for graphs without any."""
    return (1 / np.maximum(sizes, 1).astype(np.float32)).astype(np.float32)
