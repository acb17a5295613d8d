"""Sums over closed neighbourhoods in dense graphs: nodes that see the same get the same sum, taken once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import Topology, pointers
from fedmpi.graphs.refinement.quotient import twin_classes
from fedmpi.graphs.sparse import csr, ones_csr


@dataclass(frozen=True)
class TwinSums:
    """``A + I = B C B^T``: class sums, sums over the classes that each class sees, a copy for each member.

    Attributes
    ----------
    members : sparse [Q, N]
        B^T, the nodes of each twin class.
    closed, transpose : sparse [Q, Q]
        C and its transpose.
    class_of_node : int64 [N]
    num_entries : int
        Of C.
    """

    members: Tensor
    closed: Tensor
    transpose: Tensor
    class_of_node: Tensor
    num_entries: int

    @classmethod
    def of(cls, topology: Topology, device: torch.device) -> TwinSums:
        """Find the twins of a batch's graphs."""
        twins, closed = twin_classes(topology)
        of_node = torch.from_numpy(twins.of_node)
        order = torch.argsort(of_node, stable=True)
        sizes = torch.bincount(of_node, minlength=twins.count)
        members = ones_csr(pointers(sizes.numpy()), order.numpy(), topology.num_nodes)
        forward, backward = (_tensor(matrix).to(device) for matrix in (closed, closed.transposed))
        return cls(members.to(device), forward, backward, of_node.to(device), closed.num_entries)

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``(A + I) x``, [N, h]."""
        return _Sum.apply(self, x)  # type: ignore[no-any-return, no-untyped-call]


class _Sum(torch.autograd.Function):
    """The sum; its gradient is that of the transposes."""

    @staticmethod
    def forward(ctx: Any, twins: TwinSums, x: Tensor) -> Tensor:
        ctx.twins = twins
        return (twins.closed @ (twins.members @ x)).index_select(0, twins.class_of_node)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        twins = ctx.twins
        classes = twins.members @ gradients[0].contiguous()
        return None, (twins.transpose @ classes).index_select(0, twins.class_of_node)


def _tensor(matrix: Csr) -> Tensor:
    return csr(matrix.pointers, matrix.columns, matrix.weights, matrix.width)
