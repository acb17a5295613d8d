"""GIN near the limit of one CPU core: forward, backward and evaluation, compiled.

The same function and gradient as `fedmpi.models.gin` with the same dropout
masks; equal rows are computed once (`fedmpi.graphs.quotient`), and passes go
over tiles that stay in the cache (`fedmpi.models.gin_kernels`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import TILE, padded
from fedmpi.graphs.quotient import Levels, Quotient, levels
from fedmpi.models import gin_kernels as kernels
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.fast_norm import FastNorm, Normalised, Parts
from fedmpi.models.flat import FlatModel
from fedmpi.models.linear_map import LinearMap
from fedmpi.models.norm_kernels import add_rows
from fedmpi.models.options import GinOptions
from fedmpi.models.outcome import Outcome
from fedmpi.models.scratch import Scratch

Floats = npt.NDArray[np.float32]

_NORM_FLOPS = 10
"""Of a normalisation step per row and column: five sums, weighted by the nodes of a row."""


@dataclass(frozen=True)
class _Layer:
    """What the backward pass needs of a convolution; rows n, twin classes Q; class q's row is source[q]."""

    summed: Floats
    inner: Floats
    out: Floats
    row_of: npt.NDArray[np.int32]
    kept: npt.NDArray[np.unsignedinteger]
    normalised: Normalised | None
    source: npt.NDArray[np.int32]


class FastGin:
    """Kernels of one model shape, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : GinOptions
    model : FlatModel
        A GIN on the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    """

    def __init__(self, options: GinOptions, model: FlatModel, scratch: Scratch) -> None:
        self._options, self._width, self._scratch = options, padded(options.hidden), scratch
        self._gradient = model.gradient.numpy()
        slots = model.slots[: 2 * (2 * options.layers + 3)]
        maps = [LinearMap(model, *pair) for pair in zip(slots[::2], slots[1::2], strict=True)]
        self._inputs, self._inner, self._head = maps[0], maps[1:-2], maps[-2:]
        self._classes = slots[-1].shape[0]
        normed = range(options.layers if options.norms else 0)
        self._norms = [FastNorm(model, layer, self._width) for layer in normed]

    def step(self, batch: Quotient, streams: DropoutStreams) -> Outcome:
        """Run forward and backward; the model's gradient becomes that of the mean loss.

        Parameters
        ----------
        batch : Quotient
            B graphs.
        streams : DropoutStreams
            The step's masks.
        """
        self._load()
        self._gradient[:] = 0
        layers, pooled = self._forward(batch, streams)
        outcome, upstream = self._head_step(batch, pooled, streams)
        matrix = batch.pooling.transposed
        for number, layer in reversed(list(enumerate(layers))):
            upstream = self._layer_back(layer, number, matrix, upstream)
            matrix = (batch.closed if number else batch.first).transposed
        rows = self._scratch("input gradient", matrix.num_rows, self._width)
        multiply(matrix, upstream, rows)
        self._inputs.add_gradients_by_columns(rows, batch.inputs)
        return outcome

    def levels(self, graphs: GraphSet) -> Levels:
        """Return graphs as `evaluate` and `embed` take them."""
        return levels(graphs, self._options.layers, by_graph="graph" in self._options.norms)

    def evaluate(self, graphs: Levels, labels: npt.NDArray[np.int64]) -> Outcome:
        """Classify graphs without dropout; labels int64 [B]."""
        logits = self.logits(graphs)
        outcome = Outcome(np.empty(len(labels)), np.empty(len(labels), np.uint8))
        unused = self._scratch("logits gradient", len(labels), logits.shape[1])
        kernels.cross_entropy(logits, labels, self._classes, unused, outcome.losses, outcome.hits)
        return outcome

    def step_flops(self, batch: Quotient) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        later = self._options.layers - 1
        rows = batch.first.num_rows + later * batch.num_rows
        sums = batch.first.num_entries + later * batch.closed.num_entries + batch.num_rows
        width = self._width
        inputs = 2 * 2 * batch.inputs.size * width
        head = 3 * 2 * batch.pooling.num_rows * width * (width + self._head[1].width)
        norms = _NORM_FLOPS * len(self._norms) * batch.num_rows * width
        return inputs + 3 * 2 * 2 * rows * width * width + head + 2 * 2 * sums * width + norms

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `logits`."""
        rows = sum(matrix.num_rows for matrix in graphs.layers)
        sums = sum(matrix.num_entries for matrix in (*graphs.layers, graphs.pooling))
        width = self._width
        head = 2 * graphs.pooling.num_rows * width * (width + self._head[1].width)
        norms = 4 * rows * width if graphs.graph_ptrs else 0
        return 2 * graphs.inputs.size * width + 2 * 2 * rows * width * width + head + 2 * sums * width + norms

    def logits(self, graphs: Levels) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        pooled = self._pooled(graphs)
        post, readout = self._head
        hidden = self._scratch("head", len(pooled), self._width)
        post.apply(pooled, hidden, cut=True)
        logits = self._scratch("logits", len(pooled), readout.width)
        readout.apply(hidden, logits, cut=False)
        return logits[:, : self._classes]

    def embed(self, graphs: Levels) -> Floats:
        """Return what is pooled of each graph without dropout, float32 [B, h]."""
        return self._pooled(graphs)[:, : self._options.hidden]

    def _pooled(self, graphs: Levels) -> Floats:
        self._load()
        tile = [self._scratch(name, TILE, self._width) for name in ("tile a", "tile b")]
        x = self._input_rows(graphs.inputs)
        for number, matrix in enumerate(graphs.layers):
            out = self._scratch(f"level {number % 2}", matrix.num_rows, self._width)
            self._convolve(number, matrix, x, tile[0], tile[1], out)
            x = out
            if self._norms:
                own = np.arange(len(out), dtype=np.int32)
                ptrs = graphs.graph_ptrs[number] if graphs.graph_ptrs else own[:0]
                parts = Parts(graphs.counts[number], ptrs)
                self._norms[number].apply(out, own, parts, out, out, training=False)
        pooled = self._scratch("pooled", graphs.pooling.num_rows, self._width)
        multiply(graphs.pooling, x, pooled)
        return pooled

    def _load(self) -> None:
        for part in (self._inputs, *self._inner, *self._head):
            part.load()
        for norm in self._norms:
            norm.load()

    def _input_rows(self, inputs: Floats) -> Floats:
        rows = self._scratch("input rows", len(inputs), self._width)
        self._inputs.apply(inputs, rows, cut=False)
        return rows

    def _convolve(
        self, number: int, matrix: Csr, x: Floats, summed: Floats, inner: Floats, out: Floats
    ) -> None:
        first, second = self._inner[2 * number : 2 * number + 2]
        kernels.convolve(
            *entries(matrix),
            x,
            first.transposed,
            first.bias,
            second.transposed,
            second.bias,
            summed,
            inner,
            out,
            not self._norms,
        )

    def _forward(self, batch: Quotient, streams: DropoutStreams) -> tuple[list[_Layer], Floats]:
        """Return what each convolution computed, and the sums over graphs [B, h]."""
        x, layers = self._input_rows(batch.inputs), []
        own = np.arange(batch.num_rows, dtype=np.int32)
        for number in range(self._options.layers):
            matrix, row_of = (batch.closed, own) if number else (batch.first, batch.first_of)
            shape = (matrix.num_rows, self._width)
            summed, inner, out = (
                self._scratch(f"{name} {number}", *shape) for name in ("summed", "inner", "out")
            )
            self._convolve(number, matrix, x, summed, inner, out)
            normalised, source = None, row_of
            if self._norms:
                normalised = self._normalise(number, batch, out, row_of)
                out, row_of = normalised.out, own
            kept = self._kept(
                f"kept {number}", streams, number, batch.member_ptr, batch.members, batch.largest_class
            )
            x = self._scratch("dropped", batch.num_rows, self._width)
            kernels.drop(out, row_of, kept, self._scale, x)
            layers.append(_Layer(summed, inner, out, row_of, kept, normalised, source))
        pooled = self._scratch("pooled", batch.pooling.num_rows, self._width)
        multiply(batch.pooling, x, pooled)
        return layers, pooled

    def _normalise(
        self, number: int, batch: Quotient, rows: Floats, row_of: npt.NDArray[np.int32]
    ) -> Normalised:
        """Normalise a convolution's rows for every twin class, and cut at 0."""
        parts = Parts(batch.counts, batch.graph_ptr.astype(np.int32))
        shape = (batch.num_rows, self._width)
        scaled, out = (self._scratch(f"{name} {number}", *shape) for name in ("scaled", "normalised"))
        return self._norms[number].apply(rows, row_of, parts, scaled, out, training=True)

    @property
    def _scale(self) -> float:
        return 1.0 / (1.0 - self._options.dropout)

    def _kept(
        self,
        name: str,
        streams: DropoutStreams,
        layer: int,
        member_ptr: npt.NDArray[np.int32],
        members: npt.NDArray[np.int32],
        largest: int,
    ) -> npt.NDArray[np.unsignedinteger]:
        """Return how many members of each class keep each element, [Q, h]."""
        kept = self._scratch(name, len(member_ptr) - 1, self._width, np.uint8 if largest < 256 else np.uint16)
        stream, bits, threshold = streams.cells(layer, self._options.dropout)
        kernels.count_kept(stream, bits, threshold, member_ptr, members, self._options.hidden, kept)
        return kept  # type: ignore[return-value]

    def _head_step(self, batch: Quotient, pooled: Floats, streams: DropoutStreams) -> tuple[Outcome, Floats]:
        """Run the head forward and back; return the outcome and the gradient of `pooled`."""
        post, readout = self._head
        labels, size = batch.labels, len(pooled)
        hidden = self._scratch("head", size, self._width)
        post.apply(pooled, hidden, cut=True)
        own = np.arange(size + 1, dtype=np.int32)
        kept = self._kept("kept in head", streams, self._options.layers, own, own[:-1], 1)
        dropped = self._scratch("dropped in head", size, self._width)
        kernels.drop(hidden, own[:-1], kept, self._scale, dropped)
        logits = self._scratch("logits", size, readout.width)
        readout.apply(dropped, logits, cut=False)
        gradient = self._scratch("logits gradient", size, readout.width)
        gradient[:] = 0
        outcome = Outcome(np.empty(size), np.empty(size, np.uint8))
        kernels.cross_entropy(logits, labels, self._classes, gradient, outcome.losses, outcome.hits)
        readout.add_gradients(gradient, dropped)
        before = self._scratch("head gradient", size, self._width)
        readout.apply_back(gradient, before)
        upstream = self._scratch("hidden gradient", size, self._width)
        upstream[:] = 0
        ones = np.ones(size, np.float32)
        kernels.undrop(own, own[:-1], ones, before, own[:-1], kept, self._scale, hidden, upstream)
        post.add_gradients(upstream, pooled)
        post.apply_back(upstream, before)
        return outcome, before

    def _layer_back(self, layer: _Layer, number: int, matrix: Csr, upstream: Floats) -> Floats:
        """Return the gradient of a convolution's sums from that of the rows that read its output."""
        first, second = self._inner[2 * number : 2 * number + 2]
        gradient = self._scratch("out gradient", len(layer.out), self._width)
        gradient[:] = 0
        kernels.undrop(*entries(matrix), upstream, layer.row_of, layer.kept, self._scale, layer.out, gradient)
        if layer.normalised is not None:
            self._norms[number].back(gradient, layer.normalised)
            rows = self._scratch("rows gradient", len(layer.inner), self._width)
            rows[:] = 0
            add_rows(gradient, layer.source, rows)
            gradient = rows
        result = self._scratch(f"summed gradient {number % 2}", len(gradient), self._width)
        kernels.convolve_back(
            gradient, layer.inner, layer.summed, first.weight, second.weight, first.weight_gradient,
            first.bias_gradient, second.weight_gradient, second.bias_gradient, result,
        )  # fmt: skip
        first.store()
        second.store()
        return result


def entries(matrix: Csr) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
    """Return a sparse matrix as the kernels take it."""
    return matrix.pointers, matrix.columns, matrix.weights


def multiply(matrix: Csr, x: Floats, out: Floats) -> None:
    """Set `out` to a sparse matrix times `x`."""
    products.multiply_sparse(*entries(matrix), x, out)
