"""Ego-networks: the surroundings of single nodes of a large graph, as graphs of their own.

FedGraphNN (He et al. 2021) classifies all nodes of every ego-network: the same node, with its label, is in
training and test. The honest protocol takes ego-networks that share no node, and only their centres count.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.config.options import Options
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Topology, gather_ranges, pointers
from fedmpi.seeds import Purpose, key, mixed, permutation

_AT_ONCE = 256
"""Ego-networks that are cut out together; bounds memory."""


class EgoOptions(Options):
    """Which ego-networks are cut out of a dataset's one graph."""

    number: int = Field(1000, ge=1, le=1_000_000)
    """Ego-networks; with by = "label" of each class. The honest protocol may find fewer."""
    hops: int = Field(2, ge=1, le=10)
    """Distance from the centre up to which nodes belong to it."""
    by: Literal["random", "label"] = "random"
    """Centres at random, or as many of each label."""
    protocol: Literal["published", "honest"] = "published"
    """"published": all nodes of an ego-network are examples, and nodes are in several of them. "honest":
    ego-networks share no node, and their centres are the examples."""
    neighbours: int = Field(0, ge=0, le=1_000_000)
    """Most neighbours of a node that are followed, drawn at random; 0: all."""
    seed: int = Field(123, ge=0, lt=2**32)
    """Of the draws."""


def ego_networks(raw: RawGraphs, options: EgoOptions) -> RawGraphs:
    """Return the ego-networks of a dataset whose examples are the nodes of one graph.

    Nodes of an ego-network are in the order of their numbers in the large graph, which are the `node_rows`
    of the result; a graph's class is that of its centre.

    Raises
    ------
    BadInput
        Its examples are not nodes.
    """
    if raw.examples != "node" or raw.num_graphs != 1:
        raise BadInput(f"dataset.egos: {raw.name} is no single graph whose nodes have labels: remove egos")
    labels = _labels_of_nodes(raw)
    centres = _candidates(options, labels)
    if options.protocol == "honest":
        kinds = labels if options.by == "label" else np.zeros_like(labels)
        graph_ptr, nodes, centres = _disjoint(raw.topology, centres, kinds, options)
    else:
        graph_ptr, nodes = _pieces(raw.topology, centres, options)
    graph_of = np.repeat(np.arange(len(centres)), np.diff(graph_ptr))
    topology = Topology(graph_ptr, *_induced(raw.topology, graph_of, nodes))
    edges = None if raw.edge_attributes is None else raw.edge_attributes[_originals(topology, nodes, raw)]
    at_centre = nodes == centres[graph_of]
    places = np.flatnonzero(at_centre if options.protocol == "honest" else labels[nodes] >= 0)
    return replace(
        raw,
        topology=topology,
        labels=labels[nodes[places]],
        places=places,
        edge_attributes=edges,
        node_rows=raw.rows_of(nodes),
        graph_classes=labels[nodes[at_centre]],
        parts=None,
        clients=None,
    )


def _labels_of_nodes(raw: RawGraphs) -> Int:
    """Return each node's class; -1 where it has none."""
    assert raw.places is not None
    if raw.task != "classification":
        raise BadInput(f"dataset.egos: nodes of {raw.name} have several labels each: remove egos")
    labels = np.full(raw.topology.num_nodes, -1, np.int64)
    labels[raw.places] = raw.labels
    return labels


def _candidates(options: EgoOptions, labels: Int) -> Int:
    """Return the nodes that may become centres, in the order in which they are tried."""
    labelled = np.flatnonzero(labels >= 0)
    honest = options.protocol == "honest"
    if options.by == "random" and honest:
        return labelled[permutation(key(options.seed, Purpose.DATA), len(labelled))]
    plain = random.Random(options.seed)  # as the released code draws
    if options.by == "random":
        return np.array(plain.sample(labelled.tolist(), min(options.number, len(labelled))), np.int64)
    drawn: list[int] = []
    for value in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == value).tolist()
        drawn += plain.sample(members, len(members) if honest else min(options.number, len(members)))
    return np.array(drawn, np.int64)


def _pieces(topology: Topology, centres: Int, options: EgoOptions) -> tuple[Int, Int]:
    """Return pointers [G + 1] and nodes of the ego-networks of all centres."""
    cuts = range(0, len(centres), _AT_ONCE)
    parts = [_reach(topology, centres[cut : cut + _AT_ONCE], options) for cut in cuts]
    sizes = np.concatenate([np.unique(graph, return_counts=True)[1] for graph, _ in parts])
    return pointers(sizes), np.concatenate([nodes for _, nodes in parts])


def _disjoint(topology: Topology, centres: Int, kinds: Int, options: EgoOptions) -> tuple[Int, Int, Int]:
    """Return pointers, nodes and centres of ego-networks that share no node, up to `number` of each kind."""
    taken = np.zeros(topology.num_nodes, bool)
    left = np.full(int(kinds.max()) + 1, options.number)
    kept: list[Int] = []
    chosen: list[int] = []
    for cut in range(0, len(centres), _AT_ONCE):
        block = centres[cut : cut + _AT_ONCE]
        graph, nodes = _reach(topology, block, options)
        for centre, members in zip(block, np.split(nodes, np.flatnonzero(np.diff(graph)) + 1), strict=True):
            if left[kinds[centre]] and not taken[members].any():
                left[kinds[centre]] -= 1
                taken[members] = True
                kept.append(members)
                chosen.append(int(centre))
    return pointers([len(members) for members in kept]), np.concatenate(kept), np.array(chosen, np.int64)


def _reach(topology: Topology, centres: Int, options: EgoOptions) -> tuple[Int, Int]:
    """Return the nodes within so many hops of each centre: the place of its centre, and the node; sorted."""
    count = topology.num_nodes
    seen = np.arange(len(centres)) * count + centres
    frontier = seen
    for _ in range(options.hops):
        around = np.unique(_neighbours(topology, frontier, centres, options))
        frontier = np.setdiff1d(around, seen, assume_unique=True)
        seen = np.union1d(seen, frontier)
    return seen // count, seen % count


def _neighbours(topology: Topology, frontier: Int, centres: Int, options: EgoOptions) -> Int:
    """Return the neighbours of pairs (ego-network, node), as pairs: at most `options.neighbours` of each."""
    count = topology.num_nodes
    graph, node = frontier // count, frontier % count
    degrees = np.diff(topology.row_ptr)[node]
    found = np.asarray(topology.columns)[gather_ranges(topology.row_ptr[node], degrees)]
    row = np.repeat(np.arange(len(node)), degrees)
    if options.neighbours and len(degrees) and degrees.max() > options.neighbours:
        stream = np.uint64(key(options.seed, Purpose.DATA, 1))
        place = mixed(stream + centres[graph].astype(np.uint64)) + node.astype(np.uint64)
        drawn = mixed(mixed(place)[row] + found.astype(np.uint64))
        order = np.lexsort((drawn, row))
        rank = np.arange(len(order)) - np.repeat(pointers(degrees)[:-1], degrees)
        kept = np.sort(order[rank < options.neighbours])
        found, row = found[kept], row[kept]
    pairs: Int = graph[row] * count + found
    return pairs


def _induced(topology: Topology, graph_of: Int, nodes: Int) -> tuple[Int, Int]:
    """Return CSR pointers and columns of all edges between nodes of one ego-network, nodes numbered anew."""
    count = topology.num_nodes
    keys = graph_of * count + nodes
    lengths, columns = np.zeros(len(nodes), np.int64), []
    for cut in range(0, len(nodes), 1 << 16):
        mine = slice(cut, cut + (1 << 16))
        degrees = np.diff(topology.row_ptr)[nodes[mine]]
        found = np.asarray(topology.columns)[gather_ranges(topology.row_ptr[nodes[mine]], degrees)]
        wanted = np.repeat(graph_of[mine], degrees) * count + found
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        inside = keys[place] == wanted
        row = np.repeat(np.arange(len(degrees)), degrees)[inside]
        lengths[mine] = np.bincount(row, minlength=len(degrees))
        columns.append(place[inside])
    return pointers(lengths), np.concatenate([np.zeros(0, np.int64), *columns])


def _originals(topology: Topology, nodes: Int, raw: RawGraphs) -> Int:
    """Return the place in the large graph of each edge of the ego-networks, whose nodes are given."""
    count = raw.topology.num_nodes
    receivers = np.repeat(np.arange(count), np.diff(raw.topology.row_ptr))
    keys = receivers * count + np.asarray(raw.topology.columns)
    found = np.repeat(nodes, np.diff(topology.row_ptr)) * count + nodes[topology.columns]
    return np.searchsorted(keys, found)
