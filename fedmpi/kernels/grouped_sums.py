"""Sums over neighbours and graphs of several clients at once.

Each is a sum of bags of rows, in a fixed order by one thread, forwards and backwards, so that results do not
depend on timing.
"""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from fedmpi.graphs.sparse import linear
from fedmpi.kernels.grouped_attention import Entries
from fedmpi.kernels.grouped_batches import GroupBatch


class GroupSums:
    """Sums of one pass over a batch; a pass has its own, because the batch's memory is written anew.

    Rows of padding have a neighbourhood of no members.

    Parameters
    ----------
    batch : GroupBatch
    """

    def __init__(self, batch: GroupBatch) -> None:
        self.batch = batch

    def closed(self, x: Tensor) -> Tensor:
        """Return ``(A + I) x``, [k, n, h]."""
        return linear(self.batch.closed.sum, self.batch.closed_back.sum, x.flatten(0, 1)).view(x.shape)

    def normalised(self, x: Tensor) -> Tensor:
        """Return ``D^-1/2 (A + I) D^-1/2 x``, [k, n, h], D the row sums of A + I."""
        return self.closed(x * self._inverse_roots) * self._inverse_roots

    def mean_neighbours(self, x: Tensor) -> Tensor:
        """Return the mean over each node's neighbours without itself, 0 where it has none, [k, n, h]."""
        return (self.closed(x) - x) * self._inverse_degrees

    def sum_graphs(self, x: Tensor) -> Tensor:
        """Return the sum over the nodes of each graph, or the nodes that are examples, [k, B, h]."""
        sizes, example_of, pooling = self.batch.sizes, self.batch.example_of, self.batch.pooling
        pooled = linear(pooling.sum, lambda rows: rows.index_select(0, example_of), x.flatten(0, 1))
        return pooled.view(sizes.clients, sizes.bags, x.shape[2])[:, : sizes.examples]

    def mean_graphs(self, x: Tensor) -> Tensor:
        """Return the mean over the nodes of each graph, [k, B, h]."""
        sizes = self.batch.sizes
        nodes = self.batch.pooling.lengths.view(sizes.clients, sizes.bags, 1)[:, : sizes.examples]
        return self.sum_graphs(x) * nodes.clamp(min=1).to(x.dtype).reciprocal()

    @cached_property
    def entries(self) -> Entries:
        """Entries of all closed neighbourhoods."""
        return Entries(self.batch)

    @cached_property
    def _lengths(self) -> Tensor:
        """Members of each node's closed neighbourhood, [k, n, 1]."""
        return self.batch.closed.lengths.view(self.batch.sizes.clients, -1, 1)

    @cached_property
    def _inverse_roots(self) -> Tensor:
        return self._lengths.clamp(min=1).float().sqrt().reciprocal()

    @cached_property
    def _inverse_degrees(self) -> Tensor:
        degrees = self._lengths - 1
        return (degrees > 0).float() / degrees.clamp(min=1).float()
