"""Batch, graph and layer normalisation for the compiled GIN, bound to the vectors of a flat model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.graphs.products import Floats, Ints
from fedmpi.kernels import norm_loops as kernels
from fedmpi.kernels.linear_map import views
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel

PREFIXES = {"batch": "norm", "layer": "norm", "graph": "graph_norm"}
"""Name of the model's list that has the layers of each normalisation."""

_MOMENTUM = np.float32(0.1)
"""Weight of a batch in the running statistics; torch's default."""


@dataclass(frozen=True)
class Parts:
    """Rows as a normalisation sees them.

    Attributes
    ----------
    counts : float32 [Q]
        Nodes of each row.
    pointers : int32 [G + 1]
        Rows of each graph.
    """

    counts: Floats
    pointers: Ints


@dataclass(frozen=True)
class Normalised:
    """What the backward pass needs."""

    parts: Parts
    scaled: Floats
    out: Floats
    mean: Floats
    square: Floats
    fixed: bool


class _Tensors:
    """Tensors of one normalisation layer, padded to `width` columns, and their gradients.

    Attributes
    ----------
    values, gradients : float32 [rows, width]
        Scale, shift, and GraphNorm's scale of the mean, which is 1 where there is none.
    """

    def __init__(self, model: FlatModel, names: Sequence[str], rows: int, width: int) -> None:
        self._own, self._own_gradients = zip(*(views(model, name) for name in names), strict=True)
        self.values, self.gradients = np.ones((rows, width), np.float32), np.zeros((rows, width), np.float32)

    def load(self) -> None:
        """Take over the model's parameters; padded columns get scale and shift 0."""
        self.values[:2] = 0
        for row, own in zip(self.values, self._own, strict=False):
            row[: len(own)] = own

    def store(self) -> None:
        """Add the gradients to the model's."""
        for row, own in zip(self.gradients, self._own_gradients, strict=False):
            own += row[: len(own)]


class FastNorm:
    """Batch or graph normalisation, by default with ReLU, after one convolution.

    Parameters
    ----------
    model : FlatModel
    prefix : str
        Name of the layer in the model; one with running statistics is batch normalisation.
    width : int
        Columns of the rows: the hidden width, padded.
    relu : bool, optional
        Whether the output goes through ReLU.
    """

    def __init__(self, model: FlatModel, prefix: str, width: int, *, relu: bool = True) -> None:
        self._is_batch, self._relu = f"{prefix}.running_mean" in model.by_name, relu
        names = [f"{prefix}.weight", f"{prefix}.bias"] + [f"{prefix}.mean_scale"] * (not self._is_batch)
        self._tensors = _Tensors(model, names, 3, width)
        self._width = width
        moments = ("running_mean", "running_var") if self._is_batch else ()
        self._running = [views(model, f"{prefix}.{name}")[0] for name in moments]

    def load(self) -> None:
        """Take over the model's parameters."""
        self._tensors.load()

    def apply(
        self, rows: Floats, row_of: Ints, parts: Parts, scaled: Floats, out: Floats, *, training: bool
    ) -> Normalised:
        """Normalise rows, with a mean and a variance for each part.

        Batches are one part. In evaluation, and for a batch of one node, they are normalised by the
        running statistics; training moves these.

        Parameters
        ----------
        rows : float32 [n, width]
        row_of : int32 [Q]
            Row q is ``rows[row_of[q]]``.
        parts : Parts
            Nodes of each row, and rows of each graph; batch normalisation takes all as one part.
        scaled, out : float32 [Q, width]
            Set to the rows before and after weight and bias.
        training : bool
        """
        nodes = float(parts.counts.sum(dtype=np.float64))
        fixed = self._is_batch and not (training and nodes > 1)
        if self._is_batch:
            parts = Parts(parts.counts, np.array([0, len(row_of)], np.int32))
        mean, square = np.zeros((2, len(parts.pointers) - 1, self._width), np.float32)
        weight, bias, mean_scale = self._tensors.values
        if fixed:
            for target, running in zip((mean, square), self._running, strict=True):
                target[0, : len(running)] = running
        else:
            kernels.statistics(rows, row_of, parts.counts, parts.pointers, mean_scale, mean, square)
            if self._is_batch:
                self._move(mean[0], square[0] * np.float32(nodes / (nodes - 1)))
        kernels.normalise(
            rows, row_of, parts.pointers, mean_scale, weight, bias, mean, square, scaled, out, self._relu
        )
        return Normalised(parts, scaled, out, mean, square, fixed)

    def _move(self, mean: Floats, variance: Floats) -> None:
        for running, found in zip(self._running, (mean, variance), strict=True):
            running += _MOMENTUM * (found[: len(running)] - running)

    def back(self, gradient: Floats, done: Normalised) -> None:
        """Turn the gradient after the normalisation into that before it, in place; add the parameters'."""
        weight, _, mean_scale = self._tensors.values
        self._tensors.gradients[:] = 0
        kernels.normalise_back(
            gradient, done.parts.counts, done.parts.pointers, done.scaled, mean_scale, weight, done.mean,
            done.square, done.fixed, *self._tensors.gradients,
        )  # fmt: skip
        self._tensors.store()


@dataclass(frozen=True)
class NormalisedRows:
    """What the backward pass of layer normalisation needs; `inverse` [Q] is one over each row's root."""

    scaled: Floats
    out: Floats
    inverse: Floats


class FastLayerNorm:
    """Layer normalisation, by default with ReLU, after one convolution; arguments as for `FastNorm`."""

    def __init__(self, model: FlatModel, prefix: str, width: int, *, relu: bool = True) -> None:
        self._tensors = _Tensors(model, [f"{prefix}.weight", f"{prefix}.bias"], 2, width)
        self._hidden, self._relu = len(views(model, f"{prefix}.bias")[0]), relu

    def load(self) -> None:
        """Take over the model's parameters."""
        self._tensors.load()

    def apply(
        self, rows: Floats, row_of: Ints, parts: Parts, scaled: Floats, out: Floats, *, training: bool
    ) -> NormalisedRows:
        """Normalise each row by itself. See `FastNorm.apply`."""
        weight, bias = self._tensors.values
        inverse = kernels.normalise_rows(rows, row_of, self._hidden, weight, bias, scaled, out, self._relu)
        return NormalisedRows(scaled, out, inverse)

    def back(self, gradient: Floats, done: NormalisedRows) -> None:
        """Turn the gradient after the normalisation into that before it, in place; add the parameters'."""
        tensors = self._tensors
        tensors.gradients[:] = 0
        kernels.normalise_rows_back(
            gradient, self._hidden, done.scaled, done.inverse, tensors.values[0], *tensors.gradients
        )
        tensors.store()


class Norms:
    """The normalisation layers after one convolution, one upon the other, then ReLU.

    Parameters
    ----------
    names : sequence of str
        Of `GinOptions.norms`, in order; at least one.
    model : FlatModel
    layer : int
    width : int
        Columns of the rows: the hidden width, padded.
    scratch : Scratch
    """

    def __init__(
        self, names: Sequence[str], model: FlatModel, layer: int, width: int, scratch: Scratch
    ) -> None:
        self._layer, self._width, self._scratch = layer, width, scratch
        kinds = {"batch": FastNorm, "layer": FastLayerNorm, "graph": FastNorm}
        self._stack: list[Any] = [
            kinds[name](model, f"{PREFIXES[name]}.{layer}", width, relu=name == names[-1]) for name in names
        ]

    def load(self) -> None:
        """Take over the model's parameters."""
        for norm in self._stack:
            norm.load()

    def apply(self, rows: Floats, row_of: Ints, parts: Parts) -> list[Any]:
        """Normalise rows in training, and return what `back` needs; the last one's ``out`` is the result."""
        done: list[Any] = []
        for place, norm in enumerate(self._stack):
            shape, number = (len(row_of), self._width), f"{self._layer} {place}"
            scaled, out = (self._scratch(f"{name} {number}", *shape) for name in ("scaled", "normalised"))
            done.append(norm.apply(rows, row_of, parts, scaled, out, training=True))
            rows, row_of = out, np.arange(len(out), dtype=np.int32)
        return done

    def evaluate(self, rows: Floats, parts: Parts) -> None:
        """Normalise rows without dropout, in place."""
        own = np.arange(len(rows), dtype=np.int32)
        for norm in self._stack:
            norm.apply(rows, own, parts, rows, rows, training=False)

    def back(self, gradient: Floats, done: Sequence[Any]) -> None:
        """Turn the gradient after the last into that before the first, in place; add the parameters'."""
        for norm, kept in zip(reversed(self._stack), reversed(done), strict=True):
            norm.back(gradient, kept)
