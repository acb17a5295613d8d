"""Compiled layers of message-passing networks: what they share, and those of weighted sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.graphs.refinement.quotient import Quotient
from fedmpi.kernels.convolution import multiply
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.norm_loops import add_rows
from fedmpi.kernels.scratch import Scratch

Back = tuple[Csr, Floats]
"""Rows by twin classes, and the gradient of each: what the layer below goes on with."""


@dataclass(frozen=True)
class Layered:
    """What a layer keeps of a forward pass: its output [n, h] after ReLU, with a row per class.

    Twin class q's row is ``out[row_of[q]]``; `row_of` is int32 [Q].
    """

    out: Floats
    row_of: Ints


class Layer(Protocol):
    """One layer of a network, with the maps that a flat model holds."""

    steps: int = 1
    """Matrices of `Levels` that an evaluation of the layer takes."""

    keeps_input: bool = False
    """Whether `back` reads `x`, which otherwise is overwritten before."""

    norm_flops: tuple[int, int] = (0, 0)
    """FLOPs of its normalisations per row and column, in evaluation and in training."""

    _maps: Sequence[Loaded]

    def load(self) -> None:
        """Take over the model's parameters."""
        for each in self._maps:
            each.load()

    def apply(self, number: int, batch: Quotient, x: Floats) -> Any:
        """Run the layer in training; returns something `Layered`.

        Parameters
        ----------
        number : int
            Place of the layer in the network, from 0.
        batch : Quotient
        x : float32 [m, h]
            What dropout left of the layer before, or the feature rows.
        """

    def evaluate(self, number: int, graphs: Levels, first: int, x: Floats) -> Floats:
        """Return the output for rows without dropout, [n, h]; the next layer but one overwrites it.

        Parameters
        ----------
        number : int
        graphs : Levels
        first : int
            Place of the layer's first matrix in ``graphs.layers``.
        x : float32 [m, h]
        """

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Any) -> Back:
        """Store the maps' gradients from that of the output before ReLU, [n, h].

        Parameters
        ----------
        number, batch, x
            As for `apply`.
        gradient : float32 [n, h]
            Of the output before ReLU.
        done
            What `apply` returned.

        Returns
        -------
        Csr, float32 [m, h]
            A transposed matrix and rows: their product is the gradient of `x`.
        """

    def flops(self, matrices: Sequence[Csr], bonds: Floats) -> tuple[int, int]:
        """Return the FLOPs of a forward pass by such matrices, and of its backward pass."""


def matrices_of(number: int, batch: Quotient, steps: int = 1) -> list[Csr]:
    """Return the matrices that layer `number` of a training batch reads."""
    return [batch.closed if number else batch.first, *[batch.closed] * (steps - 1)]


def places_of(number: int, batch: Quotient) -> Ints:
    """Return each twin class's row in the output of layer `number`."""
    return np.arange(batch.num_rows, dtype=np.int32) if number else batch.first_of


def identity(count: int) -> Csr:
    """Return the identity matrix."""
    own = np.arange(count + 1, dtype=np.int32)
    return Csr(own, own[:-1], np.ones(count, np.float32), count)


def split(matrix: Csr) -> tuple[Csr, Ints]:
    """Return the upper part of a matrix, what receivers see, and their own rows, which stand below."""
    count = matrix.num_rows // 2
    entries = matrix.pointers[count]
    pointers, columns, weights = matrix.pointers[: count + 1], matrix.columns, matrix.weights
    return Csr(pointers, columns[:entries], weights[:entries], matrix.width), columns[entries:]


@dataclass(frozen=True)
class Summed(Layered):
    """What a layer of sums keeps; `sums` [parts n, h] are what its maps took, one part for each map."""

    sums: Floats


class FastSums(Layer):
    """Weighted sums, one linear map for each part of them, added: GCN's layer and GraphSAGE's.

    Parameters
    ----------
    maps : sequence of LinearMap
    scratch : Scratch
    """

    _maps: Sequence[LinearMap]

    def __init__(self, maps: Sequence[LinearMap], scratch: Scratch) -> None:
        self._maps, self._width, self._scratch = maps, maps[0].width, scratch

    def apply(self, number: int, batch: Quotient, x: Floats) -> Summed:
        """Run the layer in training."""
        sums = self._sums(f"sums {number}", matrices_of(number, batch)[0], x)
        return Summed(self._mapped(f"out {number}", sums), places_of(number, batch), sums)

    def evaluate(self, number: int, graphs: Levels, first: int, x: Floats) -> Floats:
        """Run one or several sums, then the maps. See `Layer.evaluate`."""
        for step, matrix in enumerate(graphs.layers[first : first + self.steps]):
            x = self._sums(f"level sums {step % 2}", matrix, x)
        return self._mapped(f"level {number % 2}", x)

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Summed) -> Back:
        """Return the transposed matrix and the gradient of the sums. See `Layer.back`."""
        return matrices_of(number, batch)[0].transposed, self._sums_back(number, gradient, done)

    def flops(self, matrices: Sequence[Csr], bonds: Floats) -> tuple[int, int]:
        """Count products of the last sums, and the stored entries of all."""
        product = 2 * matrices[-1].num_rows * self._width * self._width
        sums = 2 * sum(matrix.num_entries for matrix in matrices) * self._width
        return product + sums, 2 * product + sums

    def _sums(self, name: str, matrix: Csr, x: Floats) -> Floats:
        sums = self._scratch(name, matrix.num_rows, self._width)
        multiply(matrix, x, sums)
        return sums

    def _mapped(self, name: str, sums: Floats) -> Floats:
        """Return the maps of their parts of `sums`, added, after ReLU, [n, h]."""
        first, *others = self._maps
        count = len(sums) // len(self._maps)
        out = self._scratch(name, count, self._width)
        first.apply(sums[:count], out, relu=not others)
        for number, other in enumerate(others, 1):
            part = self._scratch("mapped part", count, self._width)
            other.apply(sums[number * count : (number + 1) * count], part, relu=False)
            np.maximum(np.add(out, part, out=out), 0, out=out)
        return out

    def _sums_back(self, number: int, gradient: Floats, done: Summed) -> Floats:
        sums_gradient = self._scratch(f"sums gradient {number % 2}", len(done.sums), self._width)
        for place, part in enumerate(self._maps):
            rows = slice(place * len(gradient), (place + 1) * len(gradient))
            part.add_gradients(gradient, done.sums[rows])
            part.apply_back(gradient, sums_gradient[rows])
        return sums_gradient


class FastPropagation(FastSums):
    """SGC: several sums one after another, the first from few rows, then one linear map.

    Parameters
    ----------
    maps : sequence of LinearMap
        One.
    scratch : Scratch
    steps : int
        Number of sums.
    """

    def __init__(self, maps: Sequence[LinearMap], scratch: Scratch, steps: int) -> None:
        super().__init__(maps, scratch)
        self.steps = steps

    def apply(self, number: int, batch: Quotient, x: Floats) -> Summed:
        """Run the layer in training; from two sums on it has a row per twin class."""
        sums = self._sums("sums", batch.first, x)
        if self.steps == 1:
            return Summed(self._mapped("out", sums), batch.first_of, sums)
        counts, rows = batch.counts[:, None], sums[batch.first_of]
        for step in range(1, self.steps):
            rows = self._sums(f"propagated {step % 2}", batch.closed, rows * counts)
        return Summed(self._mapped("out", rows), np.arange(batch.num_rows, dtype=np.int32), rows)

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Summed) -> Back:
        """Return the first sums' transposed matrix and their gradient. See `Layer.back`."""
        gradients = self._sums_back(number, gradient, done)
        if self.steps > 1:
            counts = batch.counts[:, None]
            for step in range(1, self.steps):
                gradients = (
                    self._sums(f"propagated back {step % 2}", batch.closed.transposed, gradients) * counts
                )
            rows, gradients = gradients, np.zeros((batch.first.num_rows, self._width), np.float32)
            add_rows(rows, batch.first_of, gradients)
        return batch.first.transposed, gradients
