"""Dot products of the states of pairs of nodes, and their gradient, without a row per pair in memory.

A gathered row of each end, their product and the rows that come back are six arrays of n h numbers; with many
times more pairs than nodes they cost more than all layers. Here a pair reads two rows, and the gradient is a
sparse matrix, whose entries are the pairs' gradients, times the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats, Ints, multiply_sparse
from fedmpi.graphs.simd import NARROW, dot


@compiled
def pair_dots(first: Ints, second: Ints, x: Floats, out: Floats) -> None:
    """Set each pair's sum of products of its nodes' states.

    Parameters
    ----------
    first, second : int32 [n]
    x : float32 [N, h]
        h is a multiple of `NARROW`.
    out : float32 [n]
    """
    width = x.shape[1]
    for pair in range(len(first)):
        out[pair] = dot(x, np.int64(first[pair]) * width, np.int64(second[pair]) * width, width)


@dataclass(frozen=True)
class Pairs:
    """Pairs of nodes, and for each node the pairs that it is in.

    Attributes
    ----------
    first, second : int32 [n]
    pointers : int32 [N + 1]
        Node v is in the entries ``pointers[v] .. pointers[v + 1] - 1``.
    others : int32 [2 n]
        The other node of each entry's pair.
    numbers : int64 [2 n]
        The number of each entry's pair.
    """

    first: Ints
    second: Ints
    pointers: Ints
    others: Ints
    numbers: npt.NDArray[np.int64]

    @classmethod
    def of(cls, places: npt.NDArray[np.int64], num_nodes: int) -> Pairs:
        """Sort pairs [n, 2] by their nodes; of one node's entries those where it is first stand first."""
        first, second = np.ascontiguousarray(places.T.astype(np.int32))
        own, others = np.concatenate([first, second]), np.concatenate([second, first])
        order = np.argsort(own, kind="stable")
        pointers = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=num_nodes))])
        return cls(first, second, pointers.astype(np.int32), others[order], order % max(len(first), 1))

    def dots(self, x: Tensor) -> Tensor:
        """Return the dot product of each pair's states, [n]; x [N, h] as `sparse.fits` says."""
        return _Dots.apply(self, x)  # type: ignore[no-any-return, no-untyped-call]


class _Dots(torch.autograd.Function):
    """What `Pairs.dots` returns, with its gradient."""

    @staticmethod
    def forward(ctx: Any, pairs: Pairs, x: Tensor) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(x)
        out = torch.empty(len(pairs.first))
        pair_dots(pairs.first, pairs.second, x.detach().contiguous().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        (x,), pairs = ctx.saved_tensors, ctx.pairs
        weights = gradients[0].numpy()[pairs.numbers]
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        multiply_sparse(pairs.pointers, pairs.others, weights, x.detach().contiguous().numpy(), out.numpy())
        return None, out


@cache
def warm_up() -> None:
    """Compile both kernels, or take them from the cache."""
    x = torch.ones(2, NARROW, requires_grad=True)
    Pairs.of(np.array([[0, 1]]), 2).dots(x).sum().backward()  # type: ignore[no-untyped-call]
