"""Graphs of several clients, from which batches are made by one pass over arrays that lie ready.

Examples are graphs or nodes. For a GPU, sizes are rounded up to few: batches of other graphs then have the
same shapes, and a captured step serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import GraphSet, Int, Topology, gather_ranges, pointers
from fedmpi.graphs.sparse import transposed, with_self_loops
from fedmpi.graphs.transfer import on_host, sent
from fedmpi.kernels.grouped_batches import SPARE, GroupBatch, HostBatch, Sizes

Int32 = npt.NDArray[np.int32]

_SMALL = 2048
"""Rows below which a GPU takes no longer for twice as many."""


class GroupGraphs:
    """Graphs of k clients, from which batches are made.

    Parameters
    ----------
    sets : sequence of GraphSet
        Of each client, with a class of each example, or float64 [n, T] labels, NaN where one is missing.
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
        self._of_nodes = sets[0].places is not None
        own = [each.places for each in sets if each.places is not None]
        shifted = [node + places for places, node in zip(own, first, strict=False)]
        self._places = np.concatenate([np.zeros(0, np.int64), *shifted])
        numbers = np.arange(len(self._graph_ptr))
        graph_of = np.searchsorted(self._graph_ptr, self._places, side="right") - 1
        self._examples = np.searchsorted(graph_of, numbers) if self._of_nodes else numbers
        both = [(_entries if by_entry else _closed)(each.topology) for each in sets]
        self._closed = _joined([into for into, _ in both], first)
        back_first = pointers([len(members) for (_, members), _ in both]) if by_entry else first
        back = _joined([outof for _, outof in both], back_first)
        same = [np.array_equal(self._closed[part], back[part]) for part in (0, 1)]
        self._back = None if all(same) and not by_entry else back

    def batches(self, steps: Sequence[Mapping[int, Int | None]]) -> list[HostBatch]:
        """Return the batches of some steps; rounded, those of as many clients have the same sizes.

        Parameters
        ----------
        steps : sequence of mappings of int to int64 [*] or None
            Numbers of the graphs of each client that takes part, by its place in the group; None: all.
        """
        first = self._first_graph
        graphs, lengths = [], []
        for step in steps:
            of_step = [
                np.arange(first[place], first[place + 1]) if order is None else first[place] + order
                for place, order in step.items()
            ]
            graphs.append(np.concatenate(of_step))
            lengths.append([len(each) for each in of_step])
        counts = self._counts(np.concatenate(graphs), lengths)
        sizes = self._sizes(counts)
        known = [self._known[self._examples_of(each)] for each in graphs]
        of_clients = [pointers(each) for each in lengths]
        given = zip(sizes, graphs, of_clients, counts, known, map(tuple, steps), strict=True)
        return [HostBatch(*each) for each in given]

    def fill(self, batch: HostBatch, block: Tensor) -> None:
        """Write a batch into its block, int64 [`HostBatch.words`], on the host."""
        graphs, of, sizes = batch.graphs, batch.of, batch.sizes
        views = sizes.layout.arrays(block)
        views["labels"].fill(np.nan if self._columns else 0)
        views["labels"] = views["labels"].reshape(sizes.clients, sizes.examples, self._columns or 1)
        arrays = (self._graph_ptr, self._rows, self._examples, self._labels, self._known)
        _fill(graphs, of, *arrays, self._blank, *(views[name] for name in ("rows", "labels", "weights")))
        pooled = sizes.nodes, sizes.examples, views["example_of"], views["pooling"]
        if self._of_nodes:
            _fill_places(graphs, of, self._graph_ptr, self._examples, self._places, *pooled)
        else:
            _fill_pooling(graphs, of, self._graph_ptr, SPARE, *pooled)
        both = (("closed", self._closed, False), ("closed_back", self._back, self._by_entry))
        for name, bags, by_entry in both:
            if bags is not None:
                to = (views[name], views[f"{name}_starts"])
                _fill_bags(graphs, of, sizes.nodes, self._graph_ptr, *bags, by_entry, SPARE, *to)

    def on_device(self, batch: HostBatch, block: Tensor) -> GroupBatch:
        """Return a batch whose block is on the device."""
        return batch.resident or GroupBatch.of(batch.sizes, block, self._table)

    def resident(self, order: Mapping[int, Int | None]) -> HostBatch:
        """Return a batch that stays on the device."""
        (batch,) = self.batches([order])
        block = on_host(batch.words, self._device)
        self.fill(batch, block)
        there = self.on_device(batch, block.to(self._device, non_blocking=True))
        return replace(batch, resident=there)

    def _examples_of(self, graphs: Int) -> Int:
        """Return the examples of some graphs, in order."""
        first = self._examples[graphs]
        return gather_ranges(first, self._examples[graphs + 1] - first)

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

    def _counts(self, graphs: Int, lengths: Sequence[Sequence[int]]) -> list[Int]:
        """Return examples, nodes and directed edges of each client in each step, int64 [k, 3] each."""
        of = pointers(np.concatenate([np.asarray(each, np.int64) for each in lengths]))
        examples = _by_client(np.diff(self._examples)[graphs], of)
        nodes = _by_client(self._nodes[graphs], of)
        members = _by_client(self._members[graphs], of)
        counts = np.stack([examples, nodes, members - nodes], axis=1)
        return np.split(counts, np.cumsum([len(each) for each in lengths])[:-1])

    def _sizes(self, counts: Sequence[Int]) -> list[Sizes]:
        """Return the sizes of batches, rounded up; the room for members follows the nodes' where it can."""
        back, exact = self._back is not None, []
        labels = self._columns, self._of_nodes
        for each in counts:
            (examples, nodes, _), members = each.max(axis=0).tolist(), int(each[:, 1:].sum())
            exact.append(Sizes(len(each), nodes, examples, members, members if back else -1, *labels))
        if not self._rounded:
            return exact
        nodes, examples = (max(getattr(each, name) for each in exact) for name in ("nodes", "examples"))
        rounded = {}
        for clients in {each.clients for each in exact}:
            wide = _room(nodes, clients)
            most = max(each.members for each in exact if each.clients == clients)
            members = _room(max(most, int(clients * wide * self._ratio)), 1)
            both = members, members if back else -1
            rounded[clients] = Sizes(clients, wide, _room(examples, 1), *both, *labels)
        return [rounded[each.clients] for each in exact]


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
    examples: Int,
    all_labels: npt.NDArray[Any],
    all_known: Int,
    blank: int,
    rows: Int32,
    labels: npt.NDArray[Any],
    weights: npt.NDArray[np.float32],
) -> None:
    """Write a batch's rows of features and its labels; client i takes ``graphs[of[i]:of[i + 1]]``."""
    clients = len(weights)
    room = len(rows) // clients
    weights[:] = np.float32(0.0)
    for client in range(clients):
        place, taken, labelled = client * room, 0, 0
        for number in range(of[client], of[client + 1]):
            for example in range(examples[graphs[number]], examples[graphs[number] + 1]):
                labelled += all_known[example]
        for number in range(of[client], of[client + 1]):
            graph = graphs[number]
            for example in range(examples[graph], examples[graph + 1]):
                for column in range(labels.shape[2]):
                    labels[client, taken, column] = all_labels[example, column]
                weights[client, taken] = np.float32(1.0) / np.float32(max(labelled, 1))
                taken += 1
            for node in range(graph_ptr[graph], graph_ptr[graph + 1]):
                rows[place] = node_rows[node]
                place += 1
        for padded in range(place, (client + 1) * room):
            rows[padded] = blank


@compiled
def _fill_pooling(
    graphs: Int,
    of: Int,
    graph_ptr: Int,
    spare: int,
    room: int,
    width: int,
    example_of: Int32,
    pooling: Int32,
) -> None:
    """Write where the bags of a batch's graphs begin, those of its padding, and the bag of each node."""
    clients = len(of) - 1
    bags = len(pooling) // clients
    for client in range(clients):
        place, bag, taken = client * room, client * bags, of[client + 1] - of[client]
        for number in range(taken):
            graph = graphs[of[client] + number]
            pooling[bag + number] = place
            for _ in range(graph_ptr[graph], graph_ptr[graph + 1]):
                example_of[place] = bag + number
                place += 1
        pooling[bag + taken : bag + width] = place
        for padded in range(place, (client + 1) * room):
            example_of[padded] = bag + width
        for number in range(width, bags):
            pooling[bag + number] = min(place, (client + 1) * room)
            place += spare
    pooling[len(pooling) - 1] = len(example_of)


@compiled
def _fill_places(
    graphs: Int,
    of: Int,
    graph_ptr: Int,
    examples: Int,
    all_places: Int,
    room: int,
    width: int,
    example_of: Int32,
    places: Int32,
) -> None:
    """Write the node that each example is, and each node's bag; padding takes the client's first node."""
    bags = width + 1
    for client in range(len(of) - 1):
        place, taken = client * room, 0
        example_of[place : place + room] = client * bags + width
        places[client * width : (client + 1) * width] = place
        for number in range(of[client], of[client + 1]):
            graph = graphs[number]
            for example in range(examples[graph], examples[graph + 1]):
                node = place + all_places[example] - graph_ptr[graph]
                places[client * width + taken] = node
                example_of[node] = client * bags + taken
                taken += 1
            place += graph_ptr[graph + 1] - graph_ptr[graph]


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
