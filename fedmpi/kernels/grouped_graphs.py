"""Graphs of several clients, from which batches are made by one pass over arrays that lie ready.

For a GPU, sizes are rounded up to few: batches of other graphs then have the same shapes, and a captured
step serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import GraphSet, Int, Topology, pointers
from fedmpi.graphs.sparse import transposed, with_self_loops
from fedmpi.graphs.transfer import sent
from fedmpi.kernels.grouped_batches import SPARE, GroupBatch, HostBatch, Sizes

Int32 = npt.NDArray[np.int32]

_SMALL = 2048
"""Rows below which a GPU takes no longer for twice as many."""


class GroupGraphs:
    """Graphs of k clients, from which batches are made.

    Parameters
    ----------
    sets : sequence of GraphSet
        Of each client, with a class of each graph, or float64 [G, T] labels, NaN where one is missing.
    device : torch.device
        Where batches go.
    rounded : bool
        Whether sizes are rounded up to few.
    by_entry : bool, optional
        Whether transposes of closed neighbourhoods hold the places of their entries, not the nodes in which
        they are; each node is then the last of its own, as of `fedmpi.graphs.batch`.
    """

    def __init__(
        self, sets: Sequence[GraphSet], device: torch.device, *, rounded: bool, by_entry: bool = False
    ) -> None:
        self._device, self._rounded, self._by_entry = device, rounded, by_entry
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
        labels = np.concatenate([each.labels for each in sets])
        self._columns = 0 if labels.ndim == 1 else labels.shape[1]
        self._labels = labels if self._columns else labels[:, None].astype(np.int64)
        self._known = (~np.isnan(self._labels)).sum(axis=1)
        both = [(_entries if by_entry else _closed)(each.topology) for each in sets]
        self._closed = _joined([into for into, _ in both], first)
        back_first = pointers([len(members) for (_, members), _ in both]) if by_entry else first
        back = _joined([outof for _, outof in both], back_first)
        same = [np.array_equal(self._closed[part], back[part]) for part in (0, 1)]
        self._back = None if all(same) and not by_entry else back

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
        lengths = [len(each) for each in numbers]
        graphs, of = np.concatenate(numbers), pointers(lengths)
        nodes = _by_client(self._nodes[graphs], of)
        members = _by_client(self._members[graphs], of)
        sizes = self._sizes(len(who), int(nodes.max()), max(lengths), int(members.sum()))
        block = sizes.layout.on_host(self._device)
        views = sizes.layout.arrays(block)
        names = ("rows", "graph_of", "pooling", "labels", "weights")
        views["labels"].fill(np.nan if self._columns else 0)
        views["labels"] = views["labels"].reshape(len(who), sizes.graphs, -1)
        arrays = (self._graph_ptr, self._rows, self._labels, self._known)
        _fill(graphs, of, *arrays, self._blank, SPARE, *(views[name] for name in names))
        both = (("closed", self._closed, False), ("closed_back", self._back, self._by_entry))
        for name, bags, by_entry in both:
            if bags is not None:
                to = (views[name], views[f"{name}_starts"])
                _fill_bags(graphs, of, sizes.nodes, self._graph_ptr, *bags, by_entry, SPARE, *to)
        counts = np.array([lengths, nodes, members - nodes]).T
        return HostBatch(sizes, block, counts, self._known[graphs], tuple(who))

    def resident(self, orders: Sequence[Int | None], who: Sequence[int]) -> HostBatch:
        """Return a batch that stays on the device."""
        batch = self.batch(orders, who)
        return replace(batch, block=torch.empty(0, dtype=torch.int64), resident=self.sent(batch))

    def sent(self, batch: HostBatch) -> GroupBatch:
        """Return a batch on the device."""
        if batch.resident is not None:
            return batch.resident
        return GroupBatch.of(batch.sizes, batch.block.to(self._device, non_blocking=True), self._table)

    @cached_property
    def _nodes(self) -> Int:
        """Nodes of each graph."""
        return np.diff(self._graph_ptr)

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
        back = -1 if self._back is None else members
        return Sizes(clients, nodes, graphs, members, back, self._columns)


def _room(count: int, times: int) -> int:
    """Return a size rounded up to one of 8 from a power of two to the next; if small, to a power of two."""
    if count * times < _SMALL:
        return int(max(8, 1 << max(count - 1, 0).bit_length()))
    step = max(8, 1 << max(count.bit_length() - 4, 0))
    return -(-count // step) * step


def _by_client(values: Int, of: Int) -> Int:
    sums = pointers(values)
    return sums[of[1:]] - sums[of[:-1]]


def _closed(topology: Topology) -> tuple[tuple[Int, Int], tuple[Int, Int]]:
    """Return starts and members of all closed neighbourhoods, members ascending, and of their transposes."""
    own = np.arange(topology.num_nodes)
    into = np.concatenate([np.repeat(own, np.diff(topology.row_ptr)), own])
    outof = np.concatenate([np.asarray(topology.columns), own])
    return _sorted(into, outof, len(own)), _sorted(outof, into, len(own))


def _entries(topology: Topology) -> tuple[tuple[Int, Int], tuple[Int, Int]]:
    """Return starts and members of all closed neighbourhoods, and starts and each node's entries in them."""
    starts, members = with_self_loops(topology)
    back, _, places = transposed(starts, members)
    return (starts, members), (back, places)


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
    graph_ptr: Int,
    node_rows: Int32,
    all_labels: npt.NDArray[Any],
    all_known: Int,
    blank: int,
    spare: int,
    rows: Int32,
    graph_of: Int32,
    pooling: Int32,
    labels: npt.NDArray[Any],
    weights: npt.NDArray[np.float32],
) -> None:
    """Write a batch's rows of features, graphs and labels; client i takes ``graphs[of[i]:of[i + 1]]``."""
    clients, width = weights.shape
    room, bags = len(rows) // clients, len(pooling) // clients
    weights[:] = np.float32(0.0)
    for client in range(clients):
        place, bag, taken = client * room, client * bags, of[client + 1] - of[client]
        labelled = 0
        for number in range(of[client], of[client + 1]):
            labelled += all_known[graphs[number]]
        for number in range(taken):
            graph = graphs[of[client] + number]
            labels[client, number] = all_labels[graph]
            weights[client, number] = np.float32(1.0) / np.float32(max(labelled, 1))
            pooling[bag + number] = place
            for node in range(graph_ptr[graph], graph_ptr[graph + 1]):
                rows[place] = node_rows[node]
                graph_of[place] = bag + number
                place += 1
        pooling[bag + taken : bag + width] = place
        for padded in range(place, (client + 1) * room):
            rows[padded] = blank
            graph_of[padded] = bag + width
        for number in range(width, bags):
            pooling[bag + number] = min(place, (client + 1) * room)
            place += spare
    pooling[len(pooling) - 1] = len(rows)


@compiled
def _fill_bags(
    graphs: Int,
    of: Int,
    room: int,
    graph_ptr: Int,
    all_starts: Int,
    all_members: Int32,
    by_entry: bool,
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
            first = graph_ptr[graph]
            shift = done - all_starts[first] if by_entry else place - first
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
