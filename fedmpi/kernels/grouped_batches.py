"""Batches of the graphs of several clients at once, made by one pass over arrays that lie ready.

For a GPU, sizes are rounded up to few: batches of other graphs then have the same shapes, and a captured
step serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import GraphSet, Int, Topology, pointers
from fedmpi.graphs.transfer import BlockLayout, sent

Int32 = npt.NDArray[np.int32]

_SPARE = 64
"""Members of a bag, at most, that takes what a batch has room for and does not need."""

_SMALL = 2048
"""Rows below which a GPU takes no longer for twice as many."""


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

    def sum(self, x: Tensor) -> Tensor:
        """Return the sums, [count, h]."""
        found = embedding_bag(self.members, x, self.starts, mode="sum", include_last_offset=True)
        return found[: self.count]


@dataclass(frozen=True)
class Sizes:
    """Sizes of a batch of k clients: each has n nodes and B graphs, padded.

    Attributes
    ----------
    clients, nodes, graphs : int
        k, n, B.
    members, members_back : int
        Room for the members of all closed neighbourhoods, and of their transposes; -1: these are the same.
    """

    clients: int
    nodes: int
    graphs: int
    members: int
    members_back: int

    @cached_property
    def layout(self) -> BlockLayout:
        """The batch's arrays in a block."""
        rows, whole = self.clients * self.nodes, torch.int32
        parts = [
            ("rows", whole, (rows,)),
            ("graph_of", whole, (rows,)),
            ("pooling", whole, (self.clients * (self.graphs + 1) + 1,)),
            ("labels", torch.int64, (self.clients, self.graphs)),
            ("weights", torch.float32, (self.clients, self.graphs)),
        ]
        for name, members in self._neighbourhoods:
            parts += [(name, whole, (members,)), (f"{name}_starts", whole, (rows + _spare(members) + 1,))]
        return BlockLayout(tuple(parts))

    @property
    def _neighbourhoods(self) -> list[tuple[str, int]]:
        back = [] if self.members_back < 0 else [("closed_back", self.members_back)]
        return [("closed", self.members), *back]


@dataclass(frozen=True)
class GroupBatch:
    """One batch of each of k clients on a device, padded to n nodes and B graphs.

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
        Over rows of [k n, h]: closed neighbourhoods, and their transposes.
    pooling : Bags
        Nodes of each of the k (B + 1) graphs; the last of each client's takes padded nodes.
    graph_of : int32 [k n]
        Each node's graph among these.
    labels : int64 [k, B]
    weights : float32 [k, B]
        1 / (graphs of the client), 0 for padding: the weighted sum of losses is the client's mean.
    """

    sizes: Sizes
    block: Tensor
    table: Tensor
    rows: Tensor
    closed: Bags
    closed_back: Bags
    pooling: Bags
    graph_of: Tensor
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
        everyone = torch.arange(rows, dtype=torch.int32, device=block.device)
        pooling = Bags(everyone, views["pooling"], sizes.clients * (sizes.graphs + 1))
        given = (views[name] for name in ("graph_of", "labels", "weights"))
        return cls(sizes, block, table, views["rows"], closed, back, pooling, *given)

    @property
    def x(self) -> Tensor:
        """Features of the nodes, float32 [k, n, d]."""
        found = self.table.index_select(0, self.rows)
        return found.view(self.sizes.clients, self.sizes.nodes, self.table.shape[1])


@dataclass
class HostBatch:
    """A batch before it is sent.

    Attributes
    ----------
    sizes : Sizes
    block : int64 [*]
        In host memory.
    counts : tuple of (int, int, int)
        Graphs, nodes and directed edges of each of its clients.
    who : tuple of int
        Places in the group of its clients.
    resident : GroupBatch or None
        The same on the device, where it comes in other steps too and stays.
    flops : dict
        Of each of its clients, by what is asked for; filled by whoever counts them.
    """

    sizes: Sizes
    block: Tensor
    counts: tuple[tuple[int, int, int], ...]
    who: tuple[int, ...]
    resident: GroupBatch | None = None
    flops: dict[bool, list[tuple[int, int]]] = field(default_factory=dict)


class GroupGraphs:
    """Graphs of k clients, from which batches are made.

    Parameters
    ----------
    sets : sequence of GraphSet
        Of each client.
    device : torch.device
        Where batches go.
    rounded : bool
        Whether sizes are rounded up to few.
    """

    def __init__(self, sets: Sequence[GraphSet], device: torch.device, *, rounded: bool) -> None:
        self._device, self._rounded = device, rounded
        tables = {id(each.feature_rows): each for each in sets}
        starts = dict(
            zip(tables, pointers([len(each.feature_rows) for each in tables.values()]), strict=False)
        )
        width = sets[0].feature_rows.shape[1]
        stacked = [*(each.table for each in tables.values()), np.zeros((1, width), np.float32)]
        table = torch.zeros(sum(map(len, stacked)), width)  # aligned, unlike NumPy's: products round by it
        table[:] = torch.from_numpy(np.concatenate(stacked))
        self._table, self._blank = sent(table, device), len(table) - 1
        first = pointers([each.topology.num_nodes for each in sets])
        self._first_graph = pointers([each.num_graphs for each in sets])
        self._graph_ptr = pointers(np.concatenate([np.diff(each.topology.graph_ptr) for each in sets]))
        rows = [starts[id(each.feature_rows)] + each.node_row for each in sets]
        self._rows = np.concatenate(rows).astype(np.int32)
        self._labels = np.concatenate([each.labels for each in sets]).astype(np.int64)
        both = [_closed(each.topology) for each in sets]
        self._closed = _joined([into for into, _ in both], first)
        self._back = _joined([outof for _, outof in both], first)
        same = [np.array_equal(self._closed[part], self._back[part]) for part in (0, 1)]
        self._symmetric = all(same)

    def batch(self, orders: Sequence[Int | None], who: Sequence[int]) -> HostBatch:
        """Return a batch of some of the clients.

        Parameters
        ----------
        orders : sequence of int64 [*] or None
            Numbers of each of these clients' graphs; None: all.
        who : sequence of int
            Their places in the group.
        """
        cuts = self._first_graph
        numbers = [
            np.arange(cuts[place], cuts[place + 1]) if order is None else cuts[place] + order
            for order, place in zip(orders, who, strict=True)
        ]
        graphs, of = np.concatenate(numbers), pointers([len(each) for each in numbers])
        nodes = _by_client(np.diff(self._graph_ptr)[graphs], of)
        members = _by_client(self._members[graphs], of)
        sizes = self._sizes(len(who), int(nodes.max()), int(np.diff(of).max()), int(members.sum()))
        block = sizes.layout.on_host(self._device)
        views = {name: view.numpy() for name, view in sizes.layout.views(block).items()}
        names = ("rows", "graph_of", "pooling", "labels", "weights")
        _fill(
            graphs,
            of,
            sizes.nodes,
            self._graph_ptr,
            self._rows,
            self._labels,
            self._blank,
            *(views[name] for name in names),
        )
        for name, (starts, columns) in (("closed", self._closed), ("closed_back", self._back)):
            if name in views:
                _fill_bags(
                    graphs,
                    of,
                    sizes.nodes,
                    self._graph_ptr,
                    starts,
                    columns,
                    _SPARE,
                    views[name],
                    views[f"{name}_starts"],
                )
        edges = members - nodes
        counts = zip(np.diff(of).tolist(), nodes.tolist(), edges.tolist(), strict=True)
        return HostBatch(sizes, block, tuple(counts), tuple(who))

    def resident(self, orders: Sequence[Int | None], who: Sequence[int]) -> HostBatch:
        """Return a batch that stays on the device."""
        batch = self.batch(orders, who)
        batch.resident = self.sent(batch)
        return batch

    def sent(self, batch: HostBatch) -> GroupBatch:
        """Return a batch on the device."""
        if batch.resident is not None:
            return batch.resident
        return GroupBatch.of(batch.sizes, batch.block.to(self._device, non_blocking=True), self._table)

    def place_of(self, batch: HostBatch) -> GroupBatch:
        """Return memory on the device for batches of such sizes, or the batch itself if it stays there."""
        return batch.resident or GroupBatch.of(
            batch.sizes, torch.zeros_like(batch.block, device=self._device), self._table
        )

    @cached_property
    def _members(self) -> Int:
        """Members of the closed neighbourhoods of each graph."""
        return np.diff(self._closed[0][self._graph_ptr])

    @cached_property
    def _ratio(self) -> float:
        """Members of closed neighbourhoods for each node, in all graphs."""
        return len(self._closed[1]) / max(len(self._rows), 1)

    def _sizes(self, clients: int, nodes: int, graphs: int, members: int) -> Sizes:
        """Return the sizes of a batch, rounded up; the room for members follows the nodes' where it can."""
        if self._rounded:
            nodes, graphs = _room(nodes, clients), _room(graphs, 1)
            usual = int(clients * nodes * self._ratio)
            members = _room(max(members, usual), 1)
        return Sizes(clients, nodes, graphs, members, -1 if self._symmetric else members)


def _room(count: int, times: int) -> int:
    """Return a size rounded up to one of 8 from a power of two to the next; if small, to a power of two."""
    if count * times < _SMALL:
        return int(max(8, 1 << max(count - 1, 0).bit_length()))
    step = max(8, 1 << max(count.bit_length() - 4, 0))
    return -(-count // step) * step


def _spare(members: int) -> int:
    """Return how many bags take the room that a batch does not need, whatever that is."""
    return members // _SPARE + 1


def _by_client(values: Int, of: Int) -> Int:
    sums = pointers(values)
    return sums[of[1:]] - sums[of[:-1]]


def _closed(topology: Topology) -> tuple[tuple[Int, Int], tuple[Int, Int]]:
    """Return starts and members of all closed neighbourhoods, members ascending, and of their transposes."""
    own = np.arange(topology.num_nodes)
    into = np.concatenate([np.repeat(own, np.diff(topology.row_ptr)), own])
    outof = np.concatenate([np.asarray(topology.columns), own])
    return _sorted(into, outof, len(own)), _sorted(outof, into, len(own))


def _sorted(bag: Int, member: Int, count: int) -> tuple[Int, Int]:
    return pointers(np.bincount(bag, minlength=count)), member[np.lexsort((member, bag))]


def _joined(parts: Sequence[tuple[Int, Int]], first: Int) -> tuple[Int, Int32]:
    """Return the neighbourhoods of all clients, nodes numbered over all of them."""
    starts = pointers(np.concatenate([np.diff(starts) for starts, _ in parts]))
    members = [node + members for (_, members), node in zip(parts, first, strict=False)]
    return starts, np.concatenate(members).astype(np.int32)


@compiled
def _fill(
    graphs: Int,
    of: Int,
    room: int,
    graph_ptr: Int,
    node_rows: Int32,
    all_labels: Int,
    blank: int,
    rows: Int32,
    graph_of: Int32,
    pooling: Int32,
    labels: Int,
    weights: npt.NDArray[np.float32],
) -> None:
    """Write a batch's rows of features, graphs and labels; client i takes ``graphs[of[i]:of[i + 1]]``."""
    width = labels.shape[1]
    labels[:] = 0
    weights[:] = np.float32(0.0)
    for client in range(len(of) - 1):
        place, taken = client * room, of[client + 1] - of[client]
        for number in range(taken):
            graph = graphs[of[client] + number]
            labels[client, number] = all_labels[graph]
            weights[client, number] = np.float32(1.0) / np.float32(taken)
            pooling[client * (width + 1) + number] = place
            for node in range(graph_ptr[graph], graph_ptr[graph + 1]):
                rows[place] = node_rows[node]
                graph_of[place] = client * (width + 1) + number
                place += 1
        for number in range(taken, width + 1):
            pooling[client * (width + 1) + number] = place
        for spare in range(place, (client + 1) * room):
            rows[spare] = blank
            graph_of[spare] = client * (width + 1) + width
    pooling[len(pooling) - 1] = len(rows)


@compiled
def _fill_bags(
    graphs: Int,
    of: Int,
    room: int,
    graph_ptr: Int,
    all_starts: Int,
    all_members: Int32,
    spare: int,
    members: Int32,
    starts: Int32,
) -> None:
    """Write the bags of a batch's nodes, then those that take the rest of `members`."""
    done = 0
    for client in range(len(of) - 1):
        place = client * room
        for number in range(of[client], of[client + 1]):
            graph = graphs[number]
            shift = place - graph_ptr[graph]
            for node in range(graph_ptr[graph], graph_ptr[graph + 1]):
                starts[place] = done
                place += 1
                for each in range(all_starts[node], all_starts[node + 1]):
                    members[done] = all_members[each] + shift
                    done += 1
        for padded in range(place, (client + 1) * room):
            starts[padded] = done
    members[done:] = 0
    for bag in range((len(of) - 1) * room, len(starts)):
        starts[bag] = min(done, len(members))
        done += spare
    starts[len(starts) - 1] = len(members)
