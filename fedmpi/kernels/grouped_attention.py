"""Graph attention of several clients at once over closed neighbourhoods, entry by entry.

An entry is a node in a neighbourhood. What entries hold is summed in bags of entries, and so are gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, leaky_relu

from fedmpi.graphs.sparse import linear
from fedmpi.kernels.grouped_batches import Bags, GroupBatch
from fedmpi.models.dropout import device_kept


class Entries:
    """Entries of all closed neighbourhoods of one pass over a batch of `GroupGraphs` by entry.

    Those behind the last node's are read by nobody.

    Parameters
    ----------
    batch : GroupBatch

    Attributes
    ----------
    receiver, sender : int32 [E]
        Nodes whose neighbourhood an entry is in, and that are the entry, as rows of [k n, h].
    """

    def __init__(self, batch: GroupBatch) -> None:
        self._batch, starts = batch, batch.closed.starts
        self.sender = batch.closed.members
        self.numbers = torch.arange(len(self.sender), dtype=torch.int32, device=starts.device)
        found = torch.searchsorted(starts, self.numbers, right=True, out_int32=True)
        self.receiver = (found - 1).clamp(max=batch.closed.count - 1)
        self._of_receiver = Bags(self.numbers, starts, batch.closed.count)

    def received(self, x: Tensor) -> Tensor:
        """Return the row of each entry's receiver, [E, h], of rows [k n, h]."""
        return linear(lambda rows: rows.index_select(0, self.receiver), self._of_receiver.sum, x)

    def sent(self, x: Tensor) -> Tensor:
        """Return the row of each entry's sender, [E, h], of rows [k n, h]."""
        return linear(lambda rows: rows.index_select(0, self.sender), self._batch.closed_back.sum, x)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each receiver's entries, [k n, h], of values [E, h]."""
        return linear(self._of_receiver.sum, lambda rows: rows.index_select(0, self.receiver), values)

    def highest(self, values: Tensor) -> Tensor:
        """Return the largest of each receiver's entries, [k n, h], of values [E, h]; no gradient."""
        bags = (self.numbers, values.detach(), self._of_receiver.starts)
        return embedding_bag(*bags, mode="max", include_last_offset=True)[: self._of_receiver.count]

    def dropped(self, values: Tensor, streams: Tensor, drop: float) -> Tensor:
        """Return values [E, h] after dropout by each client's stream [k], which counts its own entries."""
        nodes, width = self._batch.sizes.nodes, values.shape[1]
        client = self.receiver // nodes
        first = self._batch.closed.starts.index_select(0, client * nodes)
        numbers = (self.numbers - first).long().unsqueeze(1) * width
        numbers = numbers + torch.arange(width, device=values.device)
        keep = device_kept(streams.index_select(0, client).unsqueeze(1), numbers, drop)
        return values * (keep.to(values.dtype) * (1.0 / (1.0 - drop)))


def attended(
    entries: Entries,
    states: Tensor,
    sides: tuple[Tensor, Tensor],
    slope: float,
    dropout: tuple[Tensor, float] | None = None,
) -> Tensor:
    """Return each node's sum over its closed neighbourhood by shares of attention, [k, n, H d].

    Parameters
    ----------
    entries : Entries
    states : float32 [k, n, H, d]
        Of H heads.
    sides : (float32 [k, H, d], float32 [k, H, d])
        With which the receiver's and the sender's states are multiplied; the sums over d, added up, are an
        entry's score.
    slope : float
        Below zero of the scores' LeakyReLU.
    dropout : (int64 [k], float), optional
        Of the shares: streams and probability.
    """
    clients, nodes, heads, width = states.shape
    receiving, sending = ((states * side.unsqueeze(1)).sum(dim=3).flatten(0, 1) for side in sides)
    scores = leaky_relu(entries.received(receiving) + entries.sent(sending), slope)
    weights = (scores - entries.highest(scores).index_select(0, entries.receiver)).exp()
    shares = weights / entries.received(entries.sum(weights))
    if dropout is not None and dropout[1]:
        shares = entries.dropped(shares, *dropout)
    values = entries.sent(states.view(clients * nodes, heads * width)).view(-1, heads, width)
    summed = entries.sum((values * shares.unsqueeze(2)).flatten(1))
    return summed.view(clients, nodes, heads * width)
