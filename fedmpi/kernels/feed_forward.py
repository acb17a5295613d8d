"""InfoGraph's head compiled: the function and gradient of `fedmpi.objectives.unsupervised.FeedForward`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.products import Floats, padded, relu_backward
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel


class _Apply(torch.autograd.Function):
    """The head as autograd sees it: the parameters' gradients go to the model's vector."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, head: FastFeedForward) -> Tensor:
        ctx.head, ctx.x = head, with_columns(x, len(x))
        ctx.hidden, out = head.forward(ctx.x)
        return torch.from_numpy(out[:, : x.shape[1]])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        width = gradients[0].shape[1]
        upstream = with_columns(gradients[0], len(gradients[0]))
        return torch.from_numpy(ctx.head.back(ctx.x, ctx.hidden, upstream)[:, :width]), None


class FastFeedForward:
    """One head of an InfoGraph network, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    model : FlatModel
        On the CPU; its parameters are read, its gradient is added to.
    name : str
        Of the head in the module.
    scratch : Scratch
    """

    def __init__(self, model: FlatModel, name: str, scratch: Scratch) -> None:
        self._main = [LinearMap(model, f"{name}.main.{number}") for number in range(3)]
        self._shortcut = LinearMap(model, f"{name}.shortcut")
        self._name, self._scratch = name, scratch

    def __call__(self, x: Tensor) -> Tensor:
        """Map [n, d] to [n, d]."""
        return _Apply.apply(x, self)  # type: ignore[no-any-return, no-untyped-call]

    def forward(self, x: Floats) -> tuple[list[Floats], Floats]:
        """Return what each hidden layer gives, and the output, for x [n, d padded]."""
        hidden: list[Floats] = []
        for number, linear in enumerate(self._main):
            linear.load()
            out = self._scratch(f"{self._name} {number}", *x.shape)
            linear.apply(hidden[-1] if hidden else x, out, relu=True)
            hidden.append(out)
        self._shortcut.load()
        result = np.empty_like(x)
        self._shortcut.apply(x, result, relu=False)
        result += hidden[-1]
        return hidden, result

    def back(self, x: Floats, hidden: list[Floats], gradient: Floats) -> Floats:
        """Add the parameters' gradients and return that of x."""
        of_x, change = np.empty_like(x), self._scratch("head change", *x.shape)
        self._shortcut.add_gradients(gradient, x)
        self._shortcut.apply_back(gradient, of_x)
        upstream = self._scratch("head gradient", *x.shape)
        upstream[:] = gradient
        for number in reversed(range(3)):
            relu_backward(upstream, len(upstream), hidden[number])
            self._main[number].add_gradients(upstream, hidden[number - 1] if number else x)
            self._main[number].apply_back(upstream, change)
            upstream, change = change, upstream
        of_x += upstream
        return of_x


def with_columns(values: Tensor, rows: int) -> Floats:
    """Return values as an array with so many rows and a multiple of 16 columns, zeros behind them."""
    count, width = values.shape
    found: Floats = values.detach().contiguous().numpy()
    if (rows, padded(width)) == (count, width):
        return found
    larger = np.zeros((rows, padded(width)), np.float32)
    larger[:count, :width] = found
    return larger
