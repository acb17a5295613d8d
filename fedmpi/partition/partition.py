"""The partition of a case: which graphs each client trains, validates and tests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, example_numbers, strata
from fedmpi.errors import BadInput
from fedmpi.partition import fedgraphnn
from fedmpi.partition.options import PARTITIONS, FedGraphNN, OneDataset, PartitionOptions, PerDataset
from fedmpi.partition.splits import split, subsample

Int = npt.NDArray[np.int64]

_TINY_GRAPHS = 150


@dataclass(frozen=True)
class ClientSplit:
    """One client's graphs.

    Attributes
    ----------
    name : str
        ``client-03``, or the dataset's name where each client is a dataset.
    dataset : int
        Index of its dataset.
    train, val, test : int64 arrays
        Graph numbers in that dataset; with `nodes`, example numbers.
    stratified : bool
        False where class shares could not be kept in a step of the split.
    nodes : int64 array or None
        Where the client has a part of one large graph: its nodes, all of which are seen in training, those of
        held-out examples without their labels.
    """

    name: str
    dataset: int
    train: Int
    val: Int
    test: Int
    stratified: bool
    nodes: Int | None = None

    def examples(self, raw: RawGraphs, part: str) -> Int:
        """Return the examples of a part, "train", "val" or "test", in its dataset."""
        units: Int = getattr(self, part)
        return units if self.nodes is not None else example_numbers(raw, units)

    @property
    def steps_of(self) -> int:
        """Number of training graphs, of which batches are made."""
        return len(self.train) if self.nodes is None else 1

    @property
    def graphs(self) -> Int:
        """All graphs of the client: training, validation, test."""
        return np.concatenate([self.train, self.val, self.test])


@dataclass(frozen=True)
class Partition:
    """All clients, in client order."""

    clients: tuple[ClientSplit, ...]


def make(options: PartitionOptions, raws: Sequence[RawGraphs]) -> Partition:
    """Return the partition of the datasets: a pure function of its arguments.

    Raises
    ------
    BadInput
        Several datasets where the partition deals out one; too few graphs for the clients.
    """
    if not options.several and len(raws) != 1:
        raise BadInput(
            f"partition '{options.name}' deals out one dataset, here are {len(raws)}: "
            "use partition 'per-dataset' or name a single dataset"
        )
    with PARTITIONS.guarded(type(options)):
        partition: Partition = options.make(raws)
    return partition


def divided(options: OneDataset, raws: Sequence[RawGraphs]) -> Partition:
    """Return clients that were dealt graphs of one dataset; where graphs are held out, split one by one."""
    raw = raws[0]
    labels, _ = strata(raw)
    dealt = [_graph_numbers(options, graphs, len(labels)) for graphs in options.deal(raw, labels)]
    if not dealt:
        raise BadInput(f"partition '{options.name}' deals to no client")
    names = _names(len(dealt))
    if raw.examples == "node" and raw.graph_classes is None:
        return Partition(tuple(map(partial(_part_of_graph, options, raw, labels), names, dealt)))
    return Partition(
        tuple(
            _client(name, 0, graphs, labels, options.seed) if options.holds_out else _undivided(name, graphs)
            for name, graphs in zip(names, dealt, strict=True)
        )
    )


def _part_of_graph(options: OneDataset, raw: RawGraphs, labels: Int, name: str, examples: Int) -> ClientSplit:
    """Return a client that holds some nodes of a dataset's one graph and the edges between them."""
    assert raw.places is not None
    parts = split(examples, labels, options.seed, name)
    nodes = np.sort(np.asarray(raw.places)[examples])
    return ClientSplit(name, 0, parts.train, parts.val, parts.test, parts.stratified, nodes)


def _graph_numbers(options: OneDataset, graphs: Int, count: int) -> Int:
    """Return what one client was dealt, checked: a plug-in may have dealt it."""
    found = np.asarray(graphs)
    if found.ndim != 1 or (
        found.size and (found.dtype.kind not in "iu" or not 0 <= found.min() <= found.max() < count)
    ):
        raise BadInput(f"partition '{options.name}' deals what are no graph numbers from 0 to {count - 1}")
    return found.astype(np.int64)


def split_then_dealt(options: FedGraphNN, raws: Sequence[RawGraphs]) -> Partition:
    """Return clients of FedGraphNN's setting, whose parts were split before they were dealt out."""
    parts = fedgraphnn.deal(options, raws[0])
    return Partition(
        tuple(
            ClientSplit(name, 0, *held, stratified=options.split == "stratified")
            for name, held in zip(_names(len(parts)), parts, strict=True)
        )
    )


def _names(count: int) -> list[str]:
    width = max(2, len(str(count - 1)))
    return [f"client-{client:0{width}d}" for client in range(count)]


def pooled(partition: Partition) -> Partition:
    """Return the partition whose one client holds what all clients of this one hold.

    Raises
    ------
    BadInput
        They hold graphs of several datasets.
    """
    held = partition.clients
    if len({client.dataset for client in held}) > 1:
        raise BadInput("a central client holds graphs of one dataset, here are several: name one dataset")
    train, val, test = (
        np.concatenate([getattr(client, part) for client in held]) for part in ("train", "val", "test")
    )
    kept = all(client.stratified for client in held)
    parts = [client.nodes for client in held if client.nodes is not None]
    nodes = np.unique(np.concatenate(parts)) if parts else None
    return Partition((ClientSplit("centre", held[0].dataset, train, val, test, kept, nodes),))


def per_dataset(options: PerDataset, raws: Sequence[RawGraphs]) -> Partition:
    """Return a client for each dataset."""
    clients = []
    for index, raw in enumerate(raws):
        labels, _ = strata(raw)
        graphs = np.arange(raw.num_graphs)
        if options.tiny:
            graphs = subsample(graphs, labels, _TINY_GRAPHS, options.seed, raw.name)
        clients.append(_client(raw.name, index, graphs, labels, options.seed))
    return Partition(tuple(clients))


def _undivided(name: str, graphs: Int) -> ClientSplit:
    """Return a client that trains on all its graphs."""
    if not len(graphs):
        raise BadInput(f"{name} has no graphs: use fewer clients or a larger dataset")
    nothing = np.zeros(0, np.int64)
    return ClientSplit(name, 0, graphs, nothing, nothing, stratified=True)


def _client(name: str, dataset: int, graphs: Int, labels: Int, seed: int) -> ClientSplit:
    parts = split(graphs, labels, seed, name)
    return ClientSplit(name, dataset, parts.train, parts.val, parts.test, parts.stratified)
