"""Batches of the graphs of several clients at once, on the host and on a device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from fedmpi.graphs.packed import Int
from fedmpi.graphs.transfer import BlockLayout

SPARE = 64
"""Members of a bag, at most, that takes what a batch has room for and does not need."""


@dataclass(frozen=True)
class Bags:
    """Sums of rows: bag b sums the rows ``members[starts[b]:starts[b + 1]]``, in order.

    Attributes
    ----------
    members : int32 [*]
    starts : int32 [* + 1]
    count : int
        Bags that are asked for; those behind them sum what nobody reads.
    """

    members: Tensor
    starts: Tensor
    count: int

    @property
    def lengths(self) -> Tensor:
        """Members of each bag, int32 [count]."""
        return self.starts[1 : self.count + 1] - self.starts[: self.count]

    def sum(self, x: Tensor) -> Tensor:
        """Return the sums, [count, h]."""
        found = embedding_bag(self.members, x, self.starts, mode="sum", include_last_offset=True)
        return found[: self.count]


@dataclass(frozen=True)
class Sizes:
    """Sizes of a batch of k clients: each has n nodes and B examples, graphs or nodes, padded.

    Attributes
    ----------
    clients, nodes, examples : int
        k, n, B.
    members, members_back : int
        Room for the members of all closed neighbourhoods, and of their transposes; -1: these are the same.
    columns : int
        Labels of an example, some missing; 0: it has one class.
    of_nodes : bool
        Whether examples are nodes.
    """

    clients: int
    nodes: int
    examples: int
    members: int
    members_back: int
    columns: int = 0
    of_nodes: bool = False

    @cached_property
    def layout(self) -> BlockLayout:
        """The batch's arrays in a block."""
        return _layout(self)

    @property
    def bags(self) -> int:
        """Bags into which a client's nodes are pooled: its examples, then those of what is none."""
        return self.examples + (1 if self.of_nodes else _spare(self.nodes))

    @property
    def neighbourhoods(self) -> list[tuple[str, int]]:
        """Names of their arrays, with the room for their members."""
        back = [] if self.members_back < 0 else [("closed_back", self.members_back)]
        return [("closed", self.members), *back]


@dataclass(frozen=True)
class GroupBatch:
    """One batch of each of k clients on a device, padded to n nodes and B examples.

    Attributes
    ----------
    sizes : Sizes
    block : int64 [*]
        Memory of the batch's arrays.
    table : float32 [K, d]
        Feature rows; the last is zeros.
    rows : int32 [k n]
        Feature row of each node.
    closed, closed_back : Bags
        Over rows of [k n, h]: closed neighbourhoods, and their transposes; of `GroupGraphs` by entry the
        latter are bags of each node's places among the members of all closed neighbourhoods.
    pooling : Bags
        Nodes of each graph, and behind a client's graphs its padding: [k `Sizes.bags`]; or the node that each
        example is, and an empty bag behind a client's.
    example_of : int32 [k n]
        Each node's bag among these; of what is no example one that nobody reads.
    labels : int64 [k, B], or float64 [k, B, `Sizes.columns`]
        Classes; else labels, NaN where one is missing.
    weights : float32 [k, B]
        1 / (labels of the client), 0 for padding: the weighted sum of losses is the client's mean.
    """

    sizes: Sizes
    block: Tensor
    table: Tensor
    rows: Tensor
    closed: Bags
    closed_back: Bags
    pooling: Bags
    example_of: Tensor
    labels: Tensor
    weights: Tensor

    @classmethod
    def of(cls, sizes: Sizes, block: Tensor, table: Tensor) -> GroupBatch:
        """Return the batch in a block on a device."""
        views, rows = sizes.layout.views(block), sizes.clients * sizes.nodes
        closed = Bags(views["closed"], views["closed_starts"], rows)
        back = closed
        if sizes.members_back >= 0:
            back = Bags(views["closed_back"], views["closed_back_starts"], rows)
        numbers = partial(torch.arange, dtype=torch.int32, device=block.device)
        bags = sizes.clients * sizes.bags
        if sizes.of_nodes:
            starts = numbers(bags + 1)
            pooling = Bags(views["pooling"], starts - starts // sizes.bags, bags)
        else:
            pooling = Bags(numbers(rows), views["pooling"], bags)
        given = (views[name] for name in ("example_of", "labels", "weights"))
        return cls(sizes, block, table, views["rows"], closed, back, pooling, *given)

    @property
    def x(self) -> Tensor:
        """Features of the nodes, float32 [k, n, d]."""
        found = self.table.index_select(0, self.rows)
        return found.view(self.sizes.clients, self.sizes.nodes, self.table.shape[1])


@dataclass(frozen=True)
class HostBatch:
    """A batch before it is sent.

    Attributes
    ----------
    sizes : Sizes
    graphs : int64 [*]
        Numbers of its graphs among those of all clients, client by client.
    of : int64 [k + 1]
        Where those of each client begin.
    counts : int64 [k, 3]
        Examples, nodes and directed edges of each of its clients.
    known : int64 [examples of all its clients]
        Labels of each example.
    who : tuple of int
        Places in the group of its clients.
    resident : GroupBatch or None
        The same on the device, where it comes in other steps too and stays.
    """

    sizes: Sizes
    graphs: Int
    of: Int
    counts: Int
    known: Int
    who: tuple[int, ...]
    resident: GroupBatch | None = None

    @property
    def words(self) -> int:
        """Words of its block: none, where it stays on the device."""
        return self.sizes.layout.size if self.resident is None else 0

    @property
    def padded(self) -> Int:
        """The same with what padding adds."""
        found = self.counts.copy()
        found[:, :2] = self.sizes.examples, self.sizes.nodes
        return found


def _spare(members: int) -> int:
    """Return how many bags take the room that a batch does not need, whatever that is."""
    return members // SPARE + 1


@lru_cache
def _layout(sizes: Sizes) -> BlockLayout:
    rows, whole, examples = sizes.clients * sizes.nodes, torch.int32, (sizes.clients, sizes.examples)
    labels = ("labels", torch.float64, (*examples, sizes.columns))
    pooling = sizes.clients * sizes.examples if sizes.of_nodes else sizes.clients * sizes.bags + 1
    parts = [
        ("rows", whole, (rows,)),
        ("example_of", whole, (rows,)),
        ("pooling", whole, (pooling,)),
        labels if sizes.columns else ("labels", torch.int64, examples),
        ("weights", torch.float32, examples),
    ]
    for name, members in sizes.neighbourhoods:
        parts += [(name, whole, (members,)), (f"{name}_starts", whole, (rows + _spare(members) + 1,))]
    return BlockLayout(tuple(parts))
