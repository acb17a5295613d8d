"""A GIN layer near the limit of one CPU core: sums over neighbours, an MLP, normalisation.

Passes go over tiles that stay in the cache (`fedmpi.kernels.gin_loops`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.graphs.refinement.quotient import Quotient
from fedmpi.kernels.convolution import Convolved, FastConvolution
from fedmpi.kernels.layers import Back, Layer, Layered, matrices_of, places_of
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.norm import Norms, Parts
from fedmpi.kernels.norm_loops import add_rows
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel

_NORM_FLOPS = {"batch": (0, 10), "graph": (4, 10), "layer": (2, 6)}
"""Of a normalisation per row and column, in evaluation and in training: the sums that it takes.

Those of a batch or graph, five in training, are weighted by the nodes of a row; a row's own six are not.
"""


@dataclass(frozen=True)
class Convolution(Layered):
    """What the backward pass needs of a layer; twin class q's activations are ``out[row_of[q]]``.

    Where these are normalised, they come from row ``source[q]`` of the convolution.
    """

    convolved: Convolved
    normalised: list[Any]
    source: Ints


class FastGin(Layer):
    """One GIN layer with the normalisations after it.

    Parameters
    ----------
    number : int
        Of the layer.
    norms : sequence of str
        Names of the normalisations, in order.
    model : FlatModel
    scratch : Scratch
    """

    def __init__(self, number: int, norms: Sequence[str], model: FlatModel, scratch: Scratch) -> None:
        first, second = (LinearMap(model, f"conv.{number}.{name}") for name in ("first", "second"))
        self._width, self._scratch = first.width, scratch
        self._convolution = FastConvolution(number, first, second, scratch, relu=not norms)
        self._norms = Norms(tuple(norms), model, number, self._width, scratch) if norms else None
        evaluation, training = (sum(_NORM_FLOPS[name][place] for name in norms) for place in (0, 1))
        self.norm_flops = evaluation, training
        self._maps = [self._convolution, *([self._norms] if self._norms else [])]

    def apply(self, number: int, batch: Quotient, x: Floats) -> Convolution:
        """Run the layer in training; where it is normalised it has a row per twin class."""
        source = places_of(number, batch)
        done = self._convolution.apply(matrices_of(number, batch)[0], x)
        if self._norms is None:
            return Convolution(done.out, source, done, [], source)
        parts = Parts(batch.counts, batch.graph_ptr.astype(np.int32))
        normalised = self._norms.apply(done.out, source, parts)
        own = np.arange(batch.num_rows, dtype=np.int32)
        return Convolution(normalised[-1].out, own, done, normalised, source)

    def evaluate(self, number: int, graphs: Levels, first: int, x: Floats) -> Floats:
        """See `Layer.evaluate`."""
        x = self._convolution.evaluate(graphs.layers[first], x)
        if self._norms is not None:
            ptrs = graphs.graph_ptrs[number] if graphs.graph_ptrs else np.zeros(0, np.int32)
            self._norms.evaluate(x, Parts(graphs.counts[number], ptrs))
        return x

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Convolution) -> Back:
        """Return the transposed matrix and the gradient of the sums. See `Layer.back`."""
        if self._norms is not None:
            self._norms.back(gradient, done.normalised)
            rows = self._scratch("rows gradient", len(done.convolved.inner), self._width)
            rows[:] = 0
            add_rows(gradient, done.source, rows)
            gradient = rows
        return matrices_of(number, batch)[0].transposed, self._convolution.back(gradient, done.convolved)

    def flops(self, matrices: Sequence[Csr], bonds: Floats) -> tuple[int, int]:
        """Count two products, and the stored entries."""
        products = 2 * 2 * matrices[0].num_rows * self._width * self._width
        sums = 2 * matrices[0].num_entries * self._width
        return products + sums, 2 * products + sums
