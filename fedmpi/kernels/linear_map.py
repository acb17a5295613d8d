"""A linear map of a flat model for the compiled kernels: padded, transposed, with its gradient."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import TILE, Floats, padded
from fedmpi.graphs.simd import NARROW
from fedmpi.kernels.scratch import zeros
from fedmpi.models.flat import FlatModel


class Loaded(Protocol):
    """Keeps values derived from a flat model's parameters; `load` updates them."""

    def load(self) -> None:
        """Take over the model's parameters."""


class Linear(NamedTuple):
    """Arrays of a `LinearMap`, as compiled passes take them."""

    weight: Floats
    transposed: Floats
    bias: Floats
    weight_gradient: Floats
    bias_gradient: Floats


class LinearMap:
    """Weight [out, in] and bias [out] of a map ``y = x W^T + b``.

    Where both widths are multiples of 16, `weight` and the gradients are views of
    the model's vectors; otherwise padded copies, filled by `load` and stored by `store`.

    Parameters
    ----------
    model : FlatModel
    name : str
        Of the map in the module.
    bias : bool or str, optional
        Whether it has one, or its name where that is not the map's own; without one the map adds nothing.
    columns : slice, optional
        Of the weight: the map of some of the inputs alone.
    padded_inputs : bool, optional
        False for maps of a network's inputs, which have any width.

    Attributes
    ----------
    outputs, width : int
        Columns of y, and padded.
    weight, weight_gradient : float32 [width, in]
    transposed : float32 [in, width]
    bias, bias_gradient : float32 [width]
    arrays : Linear
        All of these.
    """

    def __init__(
        self,
        model: FlatModel,
        name: str,
        *,
        bias: bool | str = True,
        columns: slice = slice(None),
        padded_inputs: bool = True,
    ) -> None:
        self._weight, weight_gradient = (part[:, columns] for part in views(model, f"{name}.weight"))
        self.outputs, inputs = self._weight.shape
        outputs = self.outputs
        self.width = padded(outputs)
        self._bias, bias_gradient = np.zeros((2, outputs), np.float32)
        if bias:
            self._bias, bias_gradient = views(model, bias if isinstance(bias, str) else f"{name}.bias")
        self._gradients = [weight_gradient, bias_gradient]
        depth = padded(inputs) if padded_inputs else inputs
        self.transposed = zeros(depth, self.width)
        whole = self._weight.flags.c_contiguous and bool(bias)
        self._is_view = whole and (self.width, depth) == (outputs, inputs)
        if self._is_view:
            self.weight, self.bias = self._weight, self._bias
            self.weight_gradient, self.bias_gradient = self._gradients
        else:
            self.weight, self.weight_gradient = (zeros(self.width, depth) for _ in range(2))
            self.bias, self.bias_gradient = (np.zeros(self.width, np.float32) for _ in range(2))
        gradients = self.weight_gradient, self.bias_gradient
        self.arrays = Linear(self.weight, self.transposed, self.bias, *gradients)

    def load(self) -> None:
        """Take over the model's parameters; gradients become 0 with the model's."""
        self._copy()
        _transpose(self.weight, self.transposed)

    def _copy(self) -> None:
        """Take over what is no view."""
        if not self._is_view:
            outputs, inputs = self._weight.shape
            self.weight[:outputs, :inputs], self.bias[:outputs] = self._weight, self._bias
            self.weight_gradient[:], self.bias_gradient[:] = 0, 0

    def store(self) -> None:
        """Write the gradients to the model's."""
        if not self._is_view:
            outputs, inputs = self._weight.shape
            self._gradients[0][:] = self.weight_gradient[:outputs, :inputs]
            self._gradients[1][:] = self.bias_gradient[:outputs]

    def apply(self, x: Floats, out: Floats, *, relu: bool) -> None:
        """Set `out` [n, width] to the map of x [n, in], through ReLU on request."""
        apply(x, self.transposed, self.bias, out, relu)

    def apply_back(self, gradient: Floats, out: Floats) -> None:
        """Set `out` [n, in] to the gradient of the input from that of the output [n, width]."""
        products.multiply(gradient, self.weight, out)

    def add_gradients(self, gradient: Floats, x: Floats) -> None:
        """Set the gradients of weight and bias from that of the output [n, width], for input x [n, in]."""
        add_gradients(gradient, x, self.weight_gradient, self.bias_gradient)
        self.store()

    def add_gradients_by_columns(self, gradient: Floats, x: Floats) -> None:
        """Set the same gradients for inputs x [n, d] of any width d."""
        add_gradients_by_columns(gradient, x, self.weight_gradient, self.bias_gradient)
        self.store()


def views(model: FlatModel, name: str) -> tuple[Floats, Floats]:
    """Return a tensor of a flat model and its gradient, as parts of the model's vectors."""
    slot = model.by_name[name]
    values, gradient = (
        vector.numpy()[slot.start : slot.stop].reshape(slot.shape)
        for vector in (model.parameters, model.gradient)
    )
    return values, gradient


@compiled
def _transpose(weight: Floats, out: Floats) -> None:
    for first in range(0, len(weight), NARROW):
        for j in range(weight.shape[1]):
            for i in range(NARROW):
                out[j, first + i] = weight[first + i, j]


@compiled
def apply(x: Floats, transposed: Floats, bias: Floats, out: Floats, relu: bool) -> None:
    """Set `out` [n, m] to the linear map of x [n, k], through ReLU on request."""
    for first in range(0, len(x), TILE):
        count = min(TILE, len(x) - first)
        products.rows_times(x, first, count, transposed, out, first)
        if relu:
            products.add_bias_relu(out, first, count, bias)
        else:
            products.add_bias(out, first, count, bias)


@compiled
def add_gradients(gradient: Floats, x: Floats, weight: Floats, bias: Floats) -> None:
    """Add a batch's part to the gradients of a linear map.

    Parameters
    ----------
    gradient : float32 [n, m]
        Of the outputs.
    x : float32 [n, k]
        Inputs.
    weight, bias : float32 [m, k], float32 [m]
        The gradients, changed in place.
    """
    for first in range(0, len(x), TILE):
        count = min(TILE, len(x) - first)
        products.add_transposed_times(gradient, first, count, x, first, weight)
        products.add_column_sums(gradient, first, count, bias)


@compiled
def add_gradients_by_columns(gradient: Floats, x: Floats, weight: Floats, bias: Floats) -> None:
    """Do so for inputs of any width k."""
    by_columns = np.zeros((x.shape[1], gradient.shape[1]), np.float32)
    for first in range(0, len(x), TILE):
        count = min(TILE, len(x) - first)
        products.add_transposed_times(x, first, count, gradient, first, by_columns)
        products.add_column_sums(gradient, first, count, bias)
    for i in range(weight.shape[0]):
        for j in range(weight.shape[1]):
            weight[i, j] += by_columns[j, i]
