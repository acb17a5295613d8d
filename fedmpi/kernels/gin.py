"""GIN near the limit of one CPU core: forward, backward and evaluation, compiled.

The same function and gradient as `fedmpi.models.gin` with the same dropout
masks; equal rows are computed once (`fedmpi.graphs.refinement.quotient`), and passes go
over tiles that stay in the cache (`fedmpi.kernels.gin_loops`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import padded
from fedmpi.graphs.refinement.levels import Levels, levels
from fedmpi.graphs.refinement.quotient import Quotient, quotient
from fedmpi.kernels.convolution import Convolved, FastConvolution, multiply
from fedmpi.kernels.dropout import Counts, FastDropout
from fedmpi.kernels.head import FastHead
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.norm import Norms, Parts
from fedmpi.kernels.norm_loops import add_rows
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinOptions
from fedmpi.models.outcome import Outcome

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_NORM_FLOPS = {"batch": (0, 10), "graph": (4, 10), "layer": (2, 6)}
"""Of a normalisation per row and column, in evaluation and in training: the sums that it takes.

Those of a batch or graph, five in training, are weighted by the nodes of a row; a row's own six are not.
"""


@dataclass(frozen=True)
class _Layer:
    """What the backward pass needs of a layer; twin class q's activations are ``out[row_of[q]]``.

    Where these are normalised, they come from row ``source[q]`` of the convolution.
    """

    convolved: Convolved
    out: Floats
    row_of: Ints
    kept: Counts
    normalised: list[Any]
    source: Ints


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
        self._inputs = LinearMap(model, slots[0], slots[1], padded_inputs=False)
        pairs = zip(slots[2::2], slots[3::2], strict=True)
        *inner, post, readout = [LinearMap(model, weight, bias) for weight, bias in pairs]
        self._convolutions = [
            FastConvolution(number, *maps, scratch, cut=not options.norms)
            for number, maps in enumerate(zip(inner[::2], inner[1::2], strict=True))
        ]
        self._dropout = FastDropout(options.hidden, self._width, options.dropout, scratch)
        self._head = FastHead(post, readout, options.layers, slots[-1].shape[0], self._dropout, scratch)
        normed = range(options.layers if options.norms else 0)
        self._norms = [Norms(options.norms, model, layer, self._width, scratch) for layer in normed]

    def prepare(self, graphs: GraphSet) -> Quotient:
        """Return graphs as `step` takes them, all or some of them."""
        return quotient(graphs)

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
        outcome, upstream = self._head.step(pooled, batch.labels, streams)
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
        return self._head.evaluate(self._pooled(graphs), labels)

    def step_flops(self, batch: Quotient) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""
        later = self._options.layers - 1
        rows = batch.first.num_rows + later * batch.num_rows
        sums = batch.first.num_entries + later * batch.closed.num_entries + batch.num_rows
        width = self._width
        inputs = 2 * 2 * batch.inputs.size * width
        head = 3 * self._head.flops(batch.pooling.num_rows)
        each = sum(_NORM_FLOPS[name][True] for name in self._options.norms)
        norms = each * self._options.layers * batch.num_rows * width
        return inputs + 3 * 2 * 2 * rows * width * width + head + 2 * 2 * sums * width + norms

    def evaluation_flops(self, graphs: Levels) -> int:
        """Return the FLOPs of `logits`."""
        rows = sum(matrix.num_rows for matrix in graphs.layers)
        sums = sum(matrix.num_entries for matrix in (*graphs.layers, graphs.pooling))
        width = self._width
        head = self._head.flops(graphs.pooling.num_rows)
        norms = rows * width * sum(_NORM_FLOPS[name][False] for name in self._options.norms)
        return 2 * graphs.inputs.size * width + 2 * 2 * rows * width * width + head + 2 * sums * width + norms

    def logits(self, graphs: Levels) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        return self._head.logits(self._pooled(graphs))

    def embed(self, graphs: Levels) -> Floats:
        """Return what is pooled of each graph without dropout, float32 [B, h]."""
        return self._pooled(graphs)[:, : self._options.hidden]

    def _pooled(self, graphs: Levels) -> Floats:
        self._load()
        x = self._input_rows(graphs.inputs)
        for number, matrix in enumerate(graphs.layers):
            x = self._convolutions[number].evaluate(matrix, x)
            if self._norms:
                ptrs = graphs.graph_ptrs[number] if graphs.graph_ptrs else np.zeros(0, np.int32)
                self._norms[number].evaluate(x, Parts(graphs.counts[number], ptrs))
        return self._pool(graphs.pooling, x)

    def _load(self) -> None:
        parts: list[Loaded] = [self._inputs, *self._convolutions, self._head, *self._norms]
        for part in parts:
            part.load()

    def _input_rows(self, inputs: Floats) -> Floats:
        rows = self._scratch("input rows", len(inputs), self._width)
        self._inputs.apply(inputs, rows, cut=False)
        return rows

    def _pool(self, matrix: Csr, x: Floats) -> Floats:
        pooled = self._scratch("pooled", matrix.num_rows, self._width)
        multiply(matrix, x, pooled)
        return pooled

    def _forward(self, batch: Quotient, streams: DropoutStreams) -> tuple[list[_Layer], Floats]:
        """Return what each convolution computed, and the sums over graphs [B, h]."""
        x, layers = self._input_rows(batch.inputs), []
        own = np.arange(batch.num_rows, dtype=np.int32)
        for number, convolution in enumerate(self._convolutions):
            matrix, source = (batch.closed, own) if number else (batch.first, batch.first_of)
            done = convolution.apply(matrix, x)
            out, row_of, normalised = done.out, source, []
            if self._norms:
                parts = Parts(batch.counts, batch.graph_ptr.astype(np.int32))
                normalised = self._norms[number].apply(out, row_of, parts)
                out, row_of = normalised[-1].out, own
            kept = self._dropout.kept(
                f"kept {number}", streams, number, batch.member_ptr, batch.members, batch.largest_class
            )
            x = self._dropout.apply(out, row_of, kept, "dropped")
            layers.append(_Layer(done, out, row_of, kept, normalised, source))
        return layers, self._pool(batch.pooling, x)

    def _layer_back(self, layer: _Layer, number: int, matrix: Csr, upstream: Floats) -> Floats:
        """Return the gradient of a convolution's sums from that of the rows that read its output."""
        gradient = self._dropout.back(matrix, upstream, layer.out, layer.row_of, layer.kept, "out gradient")
        if self._norms:
            self._norms[number].back(gradient, layer.normalised)
            rows = self._scratch("rows gradient", len(layer.convolved.inner), self._width)
            rows[:] = 0
            add_rows(gradient, layer.source, rows)
            gradient = rows
        return self._convolutions[number].back(gradient, layer.convolved)
