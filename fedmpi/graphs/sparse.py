"""Sparse matrices of graphs as torch has them, and their product with a gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.packed import Topology
from fedmpi.graphs.products import multiply_sparse
from fedmpi.graphs.simd import NARROW

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)

Rows = Callable[[Tensor], Tensor]
"""Maps rows to rows."""


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, there: Rows, back: Rows, x: Tensor) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.back(gradients[0].contiguous())


def linear(there: Rows, back: Rows, x: Tensor) -> Tensor:
    """Return ``there(x)``, a linear map of rows whose transpose is at hand for the gradient, `back`."""
    return _Linear.apply(there, back, x)  # type: ignore[no-any-return, no-untyped-call]


def product(matrix: Tensor, transpose: Tensor, x: Tensor) -> Tensor:
    """Return ``matrix @ x``, [n, m].

    Parameters
    ----------
    matrix, transpose : torch sparse CSR [n, p], [p, n]
    x : float32 [p, m]
    """
    return linear(lambda rows: matrix @ rows, lambda rows: transpose @ rows, x)


class RowProduct:
    """``A @ x`` on the CPU by the compiled kernel, with its gradient.

    Parameters
    ----------
    forward, backward : (pointers, columns, values)
        The matrix and its transpose by rows.
    """

    def __init__(
        self,
        forward: tuple[np.ndarray, np.ndarray, np.ndarray],
        backward: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        self.forward, self.backward = (
            (
                np.ascontiguousarray(pointers, np.int32),
                np.ascontiguousarray(columns, np.int32),
                np.ascontiguousarray(values, np.float32),
            )
            for pointers, columns, values in (forward, backward)
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Return the product with x [p, m], m as `fits` says."""
        return linear(partial(_multiply, self.forward), partial(_multiply, self.backward), x)


def _multiply(matrix: tuple[np.ndarray, np.ndarray, np.ndarray], x: Tensor) -> Tensor:
    out = torch.empty(len(matrix[0]) - 1, x.shape[1])
    multiply_sparse(*matrix, x.detach().contiguous().numpy(), out.numpy())
    return out


def fits(x: Tensor) -> bool:
    """Return whether compiled products take these rows: on the CPU, their width a multiple of `NARROW`."""
    return x.device.type == "cpu" and x.shape[1] % NARROW == 0


@cache
def warm_up() -> None:
    """Compile the product, or take it from the cache."""
    one = (np.array([0, 1]), np.array([0]), np.ones(1))
    RowProduct(one, one)(torch.ones(1, NARROW))


def csr(pointers: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int) -> Tensor:
    """Return the matrix with these float32 values at the given places, [rows, width].

    Parameters
    ----------
    pointers : int [rows + 1]
        Row r has the entries ``pointers[r] .. pointers[r + 1] - 1``.
    columns : int [E]
    values : float32 [E]
    width : int
        Columns of the matrix.
    """
    rows = torch.from_numpy(np.ascontiguousarray(pointers, dtype=np.int64))
    cols = torch.from_numpy(np.ascontiguousarray(columns, dtype=np.int64))
    size = (len(pointers) - 1, width)
    entries = torch.from_numpy(values).clone()  # aligned as torch's own
    return torch.sparse_csr_tensor(rows, cols, entries, size=size, check_invariants=False)


def with_self_loops(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return CSR arrays of A + I, self loop last in each row."""
    nodes = np.arange(topology.num_nodes, dtype=np.int64)
    columns = np.insert(topology.columns, topology.row_ptr[1:], nodes)
    return topology.row_ptr + np.arange(topology.num_nodes + 1), columns


def transposed(row_ptr: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pointers and columns of the transpose, and the place of each of its entries in the matrix."""
    num_nodes = len(row_ptr) - 1
    rows = np.repeat(np.arange(num_nodes, dtype=np.int64), np.diff(row_ptr))
    short = columns.astype(np.uint16) if num_nodes <= 1 << 16 else columns  # NumPy sorts these by radix
    order = np.argsort(short, kind="stable")
    counts = np.bincount(columns, minlength=num_nodes)
    return np.concatenate([[0], np.cumsum(counts)]), rows[order], order
