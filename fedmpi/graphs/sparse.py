"""Sparse matrices of graphs as torch has them, and their product with a gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.packed import Topology

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)


class CsrProduct(torch.autograd.Function):
    """``A @ x`` with the transpose at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transpose: Tensor, x: Tensor) -> Tensor:
        """Return ``matrix @ x``.

        Parameters
        ----------
        matrix, transpose : torch sparse CSR [n, p], [p, n]
        x : float32 [p, m]
        """
        ctx.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        """Multiply by the transpose."""
        return None, None, ctx.transpose @ gradients[0].contiguous()


def ones_csr(pointers: np.ndarray, columns: np.ndarray, width: int) -> Tensor:
    """Return the matrix with ones at the given places, [rows, width]."""
    return csr(pointers, columns, np.ones(len(columns), np.float32), width)


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
