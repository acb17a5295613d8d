"""Test examples that a training set holds too: isomorphic graphs, the same node, the same edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology
from fedmpi.heterogeneity.structure import adjacency, graph_of_node
from fedmpi.seeds import mixed

if TYPE_CHECKING:
    from fedmpi.partition.partition import ClientSplit

Int = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

DEPTH = 3
"""Rounds of colour refinement: as far as three message-passing layers see."""

_EDGES_AT_ONCE = 1 << 21
"""Directed edges, about, of the graphs worked on together; bounds memory (COLLAB has 24.6 million)."""


@dataclass(frozen=True)
class ClientLeakage:
    """One client's test examples and their twins.

    Attributes
    ----------
    client, dataset : str
        Their names.
    own : bool [n]
        For each test example, in the order of the partition: whether the client trains on a twin.
    other : bool [n]
        Whether another client does.
    """

    client: str
    dataset: str
    own: Mask
    other: Mask

    @property
    def clean(self) -> Mask:
        """Which test examples have no twin in any training set."""
        clean: Mask = ~(self.own | self.other)
        return clean


@dataclass(frozen=True)
class DistinctGraphs:
    """How many graphs of a dataset are different."""

    dataset: str
    distinct: int
    graphs: int


@dataclass(frozen=True)
class Leakage:
    """The twins of a partition's test graphs, in client order, and each dataset's distinct graphs."""

    clients: tuple[ClientLeakage, ...]
    datasets: tuple[DistinctGraphs, ...]


def leakage(held: Sequence[ClientSplit], raws: Sequence[RawGraphs]) -> Leakage:
    """Return which test examples have a twin in a training set.

    Twins are graphs with equal `signatures`, one node in several ego-networks, or edges between the same
    nodes, in either direction. Graphs of different datasets are compared only where neither has node labels,
    because a label's number means something else in each dataset; nodes and edges never are.

    Parameters
    ----------
    held : sequence of ClientSplit
        The clients of a partition.
    raws : sequence of RawGraphs
        Its datasets.
    """
    of_dataset = []
    for index, raw in enumerate(raws):
        salt = 0 if raw.node_labels is None else index + 1
        of_dataset.append(signatures(raw, salt) if raw.places is None else _marks(raw, index + 1))

    def marks_of(client: ClientSplit, part: str) -> Words:
        return of_dataset[client.dataset][client.examples(raws[client.dataset], part)]

    trained = [np.unique(marks_of(client, "train")) for client in held]
    everywhere, holders = np.unique(np.concatenate(trained), return_counts=True)
    clients = []
    for client, here in zip(held, trained, strict=True):
        tested = marks_of(client, "test")
        own = np.isin(tested, here)
        place = np.minimum(np.searchsorted(everywhere, tested), len(everywhere) - 1)
        number = np.where(everywhere[place] == tested, holders[place], 0)
        clients.append(ClientLeakage(client.name, raws[client.dataset].name, own, number > own))
    distinct = [
        DistinctGraphs(raw.name, len(np.unique(marks)), len(marks))
        for raw, marks in zip(raws, of_dataset, strict=True)
    ]
    return Leakage(tuple(clients), tuple(distinct))


def _marks(raw: RawGraphs, salt: int) -> Words:
    """Return a number per example, uint64 [n], equal for the same node or the same pair of nodes."""
    assert raw.places is not None
    rows = raw.rows_of(np.asarray(raw.places)).reshape(len(raw.places), -1)
    nodes = np.sort(rows, axis=1).astype(np.uint64)
    marks = np.full(len(nodes), salt, np.uint64)
    for column in nodes.T:
        marks = mixed(marks + mixed(column))
    return marks


def signatures(raw: RawGraphs, salt: int = 0) -> Words:
    """Return a 64-bit number per graph, equal where colour refinement cannot tell two graphs apart.

    Colours start as the node's labels (one colour where there are none) and are refined `DEPTH`
    times by the multiset of the neighbours' colours, edges taken as undirected; attributes and
    edge labels are not looked at. Isomorphic graphs are always equal. Graphs that are not may be,
    if refinement cannot tell them apart or, with a chance of about 2**-64 per pair, by a
    collision: multisets are compared by sums of mixed 64-bit colours.

    Parameters
    ----------
    raw : RawGraphs
        The dataset.
    salt : int
        Signatures of different salts never mean the same.

    Returns
    -------
    uint64 [G]
    """
    topology = raw.topology
    colours = mixed(np.full(topology.num_nodes, salt, np.uint64))
    for column in () if raw.node_labels is None else np.asarray(raw.node_labels).T:
        colours = mixed(colours ^ mixed(column.astype(np.uint64)))
    blocks = (topology.row_ptr[topology.graph_ptr[1:]] // _EDGES_AT_ONCE).astype(np.int64)
    marks = np.empty(topology.num_graphs, np.uint64)
    for block in np.unique(blocks):
        graphs = np.flatnonzero(blocks == block)
        marks[graphs] = _refined(topology.take(graphs), colours[topology.nodes_of(graphs)])
    return marks


def _refined(topology: Topology, colours: Words) -> Words:
    """Return a number per graph, uint64 [G], after `DEPTH` refinements of its nodes' colours [N]."""
    matrix = adjacency(topology).astype(np.uint64)
    for _ in range(DEPTH):
        colours = mixed(colours + mixed(matrix @ mixed(colours)))
    sums = np.zeros(topology.num_graphs, np.uint64)
    np.add.at(sums, graph_of_node(topology), colours)
    return mixed(sums)
