"""Sums over closed neighbourhoods in dense graphs: nodes that see the same get the same sum, taken once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.packed import Topology, pointers
from fedmpi.graphs.refinement.quotient import twin_classes
from fedmpi.graphs.sparse import csr, linear


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
        ones = np.ones(len(order), np.float32)
        members = csr(pointers(sizes.numpy()), order.numpy(), ones, topology.num_nodes)
        forward, backward = (
            csr(each.pointers, each.columns, each.weights, each.width).to(device)
            for each in (closed, closed.transposed)
        )
        return cls(members.to(device), forward, backward, of_node.to(device), closed.num_entries)

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``(A + I) x``, [N, h]."""
        return linear(partial(self._summed, self.closed), partial(self._summed, self.transpose), x)

    def _summed(self, classes: Tensor, x: Tensor) -> Tensor:
        return (classes @ (self.members @ x)).index_select(0, self.class_of_node)
