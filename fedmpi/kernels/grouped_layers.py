"""Linear maps and dropout of several clients at once, each with weights of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedmpi.models.dropout import device_keep_bits

_CUTS = 8
"""A GPU sums a weight's gradient over nodes in this many pieces at once; a single sum is too slow."""


class _Linear(torch.autograd.Function):
    """A batched product and bias; the weight's gradient is summed in pieces, then over them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        (x, weight), gradient = ctx.saved_tensors, gradients[0]
        count, rows, _ = x.shape
        pieces = [each.reshape(count * _CUTS, rows // _CUTS, each.shape[2]) for each in (gradient, x)]
        of_weight = (
            torch.bmm(pieces[0].transpose(1, 2), pieces[1]).view(count, _CUTS, *weight.shape[1:]).sum(1)
        )
        of_x = torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None
        return of_x, of_weight, gradient.sum(1) if ctx.needs_input_grad[2] else None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return each client's rows [k, n, in] by its weight [k, out, in] and bias [k, out], [k, n, out]."""
    if x.device.type != "cpu" and x.shape[1] % _CUTS == 0:
        return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return _product(x, weight, bias)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    transposed = weight.transpose(1, 2)
    return torch.bmm(x, transposed) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, transposed)


def dropped(x: Tensor, streams: Tensor | None, layer: int, drop: float) -> Tensor:
    """Return rows [k, n, h] after dropout of a layer by streams [k, layers]; without, as they are."""
    if streams is None or drop == 0.0:
        return x
    return x * factors(streams[:, layer : layer + 1], x.shape[1:], drop)[:, 0]


def factors(streams: Tensor, shape: Sequence[int], drop: float) -> Tensor:
    """Return what dropout multiplies rows [k, *shape] by in each layer, float32 [k, layers, *shape].

    Parameters
    ----------
    streams : int64 [k, layers]
    shape : sequence of int
    drop : float
    """
    keep = device_keep_bits(streams.flatten(), math.prod(shape), drop)
    return keep.view(*streams.shape, *shape).float() * (1.0 / (1.0 - drop))


@dataclass(frozen=True)
class Weights:
    """Tensors of k clients' models by name, [k, *shape] each, or those whose names begin alike.

    Attributes
    ----------
    tensors : mapping of str to Tensor
    prefix : str
        Put before names.
    """

    tensors: Mapping[str, Tensor]
    prefix: str = ""

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[self.prefix + name]

    def part(self, name: str) -> Weights:
        """Return the tensors of a module."""
        return Weights(self.tensors, f"{self.prefix}{name}.")

    def linear(self, name: str, x: Tensor) -> Tensor:
        """Return a Linear of the rows [k, n, in], with a bias if it has one, [k, n, out]."""
        return linear(x, self[f"{name}.weight"], self.tensors.get(f"{self.prefix}{name}.bias"))
