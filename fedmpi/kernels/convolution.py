"""One GIN convolution of a flat model, compiled: sums over neighbours and an MLP of two linear maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import TILE, Floats, Ints
from fedmpi.kernels import gin_loops as kernels
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch


@dataclass(frozen=True)
class Added:
    """Addend of the first linear map's outputs: row i gets ``rows[of[i]]``; by default none.

    Attributes
    ----------
    rows : float32 [k, h]
    of : int32 [n] or [0]
    """

    rows: Floats
    of: Ints


NOTHING = Added(np.zeros((1, 1), np.float32), np.zeros(0, np.int32))


@dataclass(frozen=True)
class Convolved:
    """What the backward pass needs of a convolution, float32 [n, h] each (`summed` as wide as its input)."""

    summed: Floats
    inner: Floats
    out: Floats


class FastConvolution:
    """The convolution of one layer.

    Parameters
    ----------
    number : int
        Of the layer; layers share no buffers that a backward pass reads.
    first, second : LinearMap
    scratch : Scratch
    relu : bool
        Whether the output goes through ReLU.
    mapped : bool, optional
        Whether rows are mapped before they are summed, for a layer that reads few rows often.
    """

    def __init__(
        self,
        number: int,
        first: LinearMap,
        second: LinearMap,
        scratch: Scratch,
        *,
        relu: bool,
        mapped: bool = False,
    ) -> None:
        self._number, self._first, self._second, self._relu = number, first, second, relu
        self._mapped = mapped
        self._width, self._depth, self._scratch = first.width, len(first.transposed), scratch

    def load(self) -> None:
        """Take over the model's parameters."""
        self._first.load()
        self._second.load()

    def apply(self, matrix: Csr, x: Floats, added: Added = NOTHING) -> Convolved:
        """Convolve the rows of `x` [p, h] by a matrix [n, p], and keep what `back` needs."""
        widths = {"summed": self._depth, "inner": self._width, "out": self._width}
        done = Convolved(
            *(self._scratch(f"{name} {self._number}", matrix.num_rows, each) for name, each in widths.items())
        )
        self._convolve(matrix, x, done, added)
        return done

    def evaluate(self, matrix: Csr, x: Floats, added: Added = NOTHING) -> Floats:
        """Return the convolution, [n, h]; the next layer but one overwrites it."""
        widths = {"tile a": self._depth, "tile b": self._width}
        summed, inner = (self._scratch(name, TILE, each) for name, each in widths.items())
        out = self._scratch(f"level {self._number % 2}", matrix.num_rows, self._width)
        self._convolve(matrix, x, Convolved(summed, inner, out), added)
        return out

    def back(self, gradient: Floats, done: Convolved, added: Added = NOTHING) -> Floats:
        """Return the gradient of the sums from that of the output before ReLU, [n, h].

        The gradients of the maps are stored, that of what was added is added to ``added.rows``.
        """
        first, second = self._first, self._second
        result = self._scratch(f"summed gradient {self._number % 2}", len(gradient), self._depth)
        kernels.convolve_back(
            gradient, done.inner, done.summed, first.weight, second.weight, first.weight_gradient,
            first.bias_gradient, second.weight_gradient, second.bias_gradient, result, added.rows, added.of,
            self._mapped,
        )  # fmt: skip
        first.store()
        second.store()
        return result

    def mapped_back(self, matrix: Csr, gradient: Floats, x: Floats) -> Floats:
        """Return the gradient of the rows `x` [p, h] that were mapped, from that of their sums [n, h].

        Parameters
        ----------
        matrix : Csr
            The transposed matrix [p, n].
        """
        rows, result = (self._scratch(f"{name} gradient", len(x), self._width) for name in ("sent", "input"))
        multiply(matrix, gradient, rows)
        products.add_transposed_times(rows, 0, len(rows), x, 0, self._first.weight_gradient)
        self._first.store()
        self._first.apply_back(rows, result)
        return result

    def _convolve(self, matrix: Csr, x: Floats, into: Convolved, added: Added) -> None:
        first, second = self._first, self._second
        if self._mapped:
            rows = self._scratch("mapped", len(x), self._width)
            products.multiply(x, first.transposed, rows)
            x = rows
        kernels.convolve(
            *matrix.entries, x, first.transposed, first.bias, second.transposed, second.bias,
            into.summed, into.inner, into.out, self._relu, added.rows, added.of,
            self._mapped,
        )  # fmt: skip


def multiply(matrix: Csr, x: Floats, out: Floats) -> None:
    """Set `out` to a sparse matrix times `x`."""
    products.multiply_sparse(*matrix.entries, x, out)
