"""`fedmpi.models.encoder` near the limit of one CPU core: its passes compiled, its losses in torch.

The same function and gradient; nodes with equal rows are computed once (`fedmpi.graphs.refinement.colours`),
and passes go over tiles that stay in the cache, as in `fedmpi.kernels.gin`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints, padded, relu_backward
from fedmpi.graphs.refinement.colours import Layer, Rows
from fedmpi.kernels import encoder_loops as kernels
from fedmpi.kernels.convolution import Convolved, FastConvolution, multiply
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.norm import FastNorm, Normalised, Parts
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.encoder import Encoding
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinEncoderOptions

_NORM_FLOPS = 10
"""Of a normalisation step per row and column: five sums, weighted by the nodes of a row."""


_Done = tuple[Convolved, Normalised]
"""What the backward pass needs of a layer."""


class _Encode(torch.autograd.Function):
    """The encoder's pass as autograd sees it: the parameters' gradients go to the model's vector."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, encoder: FastEncoder, rows: Rows) -> tuple[Tensor, Tensor]:
        nodes, graphs, ctx.layers = encoder.passed(rows, training=True)
        ctx.encoder, ctx.rows = encoder, rows
        ctx.set_materialize_grads(False)
        return nodes, graphs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[None, None, None]:
        of_nodes, of_graphs = (None if each is None else each.contiguous().numpy() for each in gradients)
        ctx.encoder.back(ctx.rows, ctx.layers, of_nodes, of_graphs)
        return None, None, None


class FastEncoder:
    """Kernels of one shape of `GinEncoder`, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    options : GinEncoderOptions
    model : FlatModel
        An encoder on the CPU, with or without heads; its parameters are read, its gradient is added to.
    scratch : tuple of Scratch
        For views without and with weights: at most one view of each kind may await its backward pass.
    """

    def __init__(
        self, options: GinEncoderOptions, model: FlatModel, scratch: tuple[Scratch, Scratch]
    ) -> None:
        self._options, self._width, self._scratch = options, padded(options.hidden), scratch
        layers = range(options.layers)
        maps = [
            (LinearMap(model, f"conv.{layer}.first"), LinearMap(model, f"conv.{layer}.second"))
            for layer in layers
        ]
        self._convolutions = [
            [FastConvolution(layer, *maps[layer], each, relu=True) for layer in layers] for each in scratch
        ]
        self._norms = [FastNorm(model, f"conv.{layer}.norm", self._width, relu=False) for layer in layers]
        self._anchor = torch.zeros(0, requires_grad=True)
        self.layers = options.layers

    def encode(self, rows: Rows, *, training: bool) -> Encoding:
        """Return vectors of node classes (`Rows.node_classes`) and of graphs; as `GinEncoder.encode`."""
        counts = None if rows.node_classes is None else torch.from_numpy(rows.node_classes.counts)
        if training:
            nodes, graphs = _Encode.apply(self._anchor, self, rows)  # type: ignore[no-untyped-call]
        else:
            nodes, graphs, _ = self.passed(rows, training=False)
        return Encoding(nodes, graphs, counts)

    def passed(self, rows: Rows, *, training: bool) -> tuple[Tensor, Tensor, list[_Done]]:
        """Return the vectors of classes of nodes [C, L h] and graphs [B, L h], and what `back` needs."""
        o, scratch, done = self._options, self._scratch[rows.weighted], []
        classes = 0 if rows.node_classes is None else len(rows.node_classes.first)
        nodes, graphs = (torch.empty(count, o.dimension) for count in (classes, rows.num_graphs))
        x = rows.inputs
        for number, layer in enumerate(rows.layers):
            convolution = self._convolutions[rows.weighted][number]
            convolution.load()
            self._norms[number].load()
            if training:
                convolved = convolution.apply(layer.sums, x)
                done.append((convolved, self._normalise(number, rows, convolved.out)))
                x = done[-1][1].out
            else:
                x = convolution.evaluate(layer.sums, x)
                self._norms[number].apply(x, *_every_row(layer), x, x, training=False)
            pooled = scratch("pooled", rows.num_graphs, self._width)
            multiply(layer.pooling, x, pooled)
            graphs.numpy()[:, number * o.hidden : (number + 1) * o.hidden] = pooled[:, : o.hidden]
            if rows.node_classes is not None:
                row_of = rows.node_classes.rows[number]
                kernels.gather_columns(x, row_of, nodes.numpy(), number * o.hidden, o.hidden)
        return nodes, graphs, done

    def _normalise(self, number: int, rows: Rows, x: Floats) -> Normalised:
        scratch, layer = self._scratch[rows.weighted], rows.layers[number]
        scaled, out = (scratch(f"{name} {number}", *x.shape) for name in ("scaled", "normalised"))
        return self._norms[number].apply(x, *_every_row(layer), scaled, out, training=True)

    def back(self, rows: Rows, done: list[_Done], of_nodes: Floats | None, of_graphs: Floats | None) -> None:
        """Add the parameters' gradients, from those of the vectors, where there are any.

        Parameters
        ----------
        rows : Rows
        done : list
            What `passed` returned in training.
        of_nodes, of_graphs : float32 [C, L h], float32 [B, L h], optional
            Gradients of the vectors of node classes and of graphs; None where there is none.
        """
        o, scratch = self._options, self._scratch[rows.weighted]
        following: tuple[Csr, Floats] | None = None
        for number in reversed(range(o.layers)):
            layer, first = rows.layers[number], number * o.hidden
            gradient = scratch("gradient", len(layer.counts), self._width)
            if of_graphs is None:
                gradient[:] = 0
            else:
                nodes = layer.pooling.pointers, layer.pooling.columns
                kernels.spread_graphs(of_graphs, *nodes, first, o.hidden, gradient)
            if of_nodes is not None and rows.node_classes is not None:
                kernels.add_columns(of_nodes, rows.node_classes.rows[number], first, o.hidden, gradient)
            if following is not None:
                line = scratch("line", 1, self._width)
                kernels.add_sums(*following[0].transposed.entries, following[1], line, gradient)
            convolved, normalised = done[number]
            self._norms[number].back(gradient, normalised)
            relu_backward(gradient, len(gradient), convolved.out)
            back = self._convolutions[rows.weighted][number].back(gradient, convolved)
            following = layer.sums, back

    def flops(self, rows: Rows, *, training: bool) -> int:
        """Return the FLOPs of a pass over a view, forward and backward if `training`."""
        total, width, depth = 0, self._width, rows.inputs.shape[1]
        for layer in rows.layers:
            count = len(layer.counts)
            dense = 2 * count * (depth + width) * width
            sums, pooled = 2 * layer.sums.num_entries * depth, layer.pooling.num_entries * width
            total += dense + sums + 2 * pooled
            if training:
                total += 2 * dense + sums + pooled + _NORM_FLOPS * count * width
            depth = width
        identity = 2 * rows.layers[0].sums.num_entries * rows.inputs.shape[1]
        return total - identity if training else total


def _every_row(layer: Layer) -> tuple[Ints, Parts]:
    count = len(layer.counts)
    return np.arange(count, dtype=np.int32), Parts(layer.counts, np.array([0, count], np.int32))
