"""The partition of a case: which graphs each client trains, validates and tests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, example_numbers, strata
from fedmpi.errors import BadInput
from fedmpi.partition import fedgraphnn
from fedmpi.partition import options as partitions
from fedmpi.partition.population import Population, places
from fedmpi.partition.splits import Split, split, subsample
from fedmpi.seeds import Purpose, key, permutation

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
        held-out examples without their labels; in the numbers of `RawGraphs.node_rows`, where there are any.
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
    def held_out(self) -> Int:
        """Validation graphs, then test graphs."""
        return np.concatenate([self.val, self.test])

    @property
    def graphs(self) -> Int:
        """All graphs of the client: training, validation, test."""
        return np.concatenate([self.train, self.val, self.test])


@dataclass(frozen=True)
class Partition:
    """All clients, in client order; with a population they are the places of a round."""

    clients: tuple[ClientSplit, ...]
    population: Population | None = None
    public: Int | None = None
    """Graphs that all clients have, beside their own, ascending."""

    @property
    def trained(self) -> list[ClientSplit]:
        """Clients as what they train on leaks: of a population, one more that has all training graphs."""
        if self.population is None:
            return list(self.clients)
        nothing = np.zeros(0, np.int64)
        everybody = replace(self.clients[0], train=self.population.pool, val=nothing, test=nothing)
        return [*(replace(client, train=nothing) for client in self.clients), everybody]


def make(options: partitions.PartitionOptions, raws: Sequence[RawGraphs]) -> Partition:
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
    with partitions.PARTITIONS.guarded(type(options)):
        partition: Partition = options.make(raws)
    return partition


def with_public(partition: Partition, share: float, seed: int) -> Partition:
    """Return the partition with a share of each client's training graphs public, which no client keeps.

    Raises
    ------
    BadInput
        Clients of several datasets, or parts of one graph; a client has no graph left, or none gives one.
    """
    given = []
    for number, client in enumerate(partition.clients):
        if client.nodes is not None or client.dataset or partition.population is not None:
            raise BadInput("public: it is for clients that stay, with graphs of one dataset: leave it out")
        order = permutation(key(seed, Purpose.PUBLIC, number), len(client.train))
        given.append(client.train[order[: int(share * len(client.train) + 0.5)]])
    public = np.unique(np.concatenate(given))
    if not len(public):
        raise BadInput(
            f"public = {share}: no client has so many graphs that it gives one: take a larger share"
        )
    left = [client.train[~np.isin(client.train, public)] for client in partition.clients]
    if empty := [each.name for each, train in zip(partition.clients, left, strict=True) if not len(train)]:
        raise BadInput(f"public = {share}: {empty[0]} has no training graph left: take a smaller share")
    own = zip(partition.clients, left, strict=True)
    clients = tuple(replace(client, train=train) for client, train in own)
    return replace(partition, clients=clients, public=public)


def divided(options: partitions.OneDataset, raws: Sequence[RawGraphs]) -> Partition:
    """Return clients that were dealt graphs of one dataset; where graphs are held out, split one by one."""
    raw = raws[0]
    labels, _ = strata(raw)
    dealt = [_graph_numbers(options, graphs, len(labels)) for graphs in options.deal(raw, labels)]
    if not dealt:
        raise BadInput(f"partition '{options.name}' deals to no client")
    names = _names(len(dealt))
    if not options.overlaps():
        _refuse_repeats(options, names, dealt)
    return Partition(
        tuple(_client(options, raw, 0, name, held) for name, held in zip(names, dealt, strict=True))
    )


def as_given(options: partitions.Given, raws: Sequence[RawGraphs]) -> Partition:
    """Return the clients that a dataset states, under its names; of one graph each has all its nodes."""
    raw = raws[0]
    if raw.clients is None:
        raise BadInput(f'partition "given": {raw.name} does not say whose examples are: use "iid"')
    if options.clients != (count := len(raw.client_names)):
        raise BadInput(
            f"{raw.name} has {count} clients: set partition.clients = {count} (got {options.clients})"
        )
    clients = []
    for number, name in enumerate(raw.client_names):
        own = np.flatnonzero(np.asarray(raw.clients) == number)
        held = own if raw.places is None else np.flatnonzero(np.isin(raw.places, own))
        client = _client(options, raw, 0, name, held)
        clients.append(client if raw.places is None else replace(client, nodes=own))
    return Partition(tuple(clients))


def _client(
    options: partitions.PartitionOptions, raw: RawGraphs, dataset: int, name: str, held: Int
) -> ClientSplit:
    """Return a client that holds some graphs, or some nodes of a dataset's one graph."""
    if not len(held):
        raise BadInput(f"{name} has no examples: use fewer clients or a larger dataset")
    parts = _parts(options, raw, name, held)
    return _placed(ClientSplit(name, dataset, parts.train, parts.val, parts.test, parts.stratified), raw)


def _placed(client: ClientSplit, raw: RawGraphs) -> ClientSplit:
    """Return a client with its nodes, where its examples are nodes or edges of one graph."""
    if raw.places is None or raw.graph_classes is not None:
        return client
    return replace(client, nodes=np.unique(raw.rows_of(np.asarray(raw.places)[client.graphs])))


def _parts(options: partitions.PartitionOptions, raw: RawGraphs, name: str, held: Int) -> Split:
    """Return what a client holds by part, as the options or the dataset say."""
    if not options.holds_out:
        nothing = np.zeros(0, np.int64)
        return Split(held, nothing, nothing, stratified=True)
    if not isinstance(options, partitions.Parts) or options.shares is not None:
        shares = options.shares if isinstance(options, partitions.Parts) else None
        return split(held, strata(raw)[0], options.seed, name, shares or (0.8, 0.1, 0.1))
    if raw.parts is None:
        of = "" if raw.graph_classes is None else " of ego-networks"
        raise BadInput(f'partition.parts = "dataset": {raw.name} fixes no parts{of}: use "80/10/10"')
    fixed = np.asarray(raw.parts)[held]
    train, val, test = (held[fixed == part] for part in range(3))
    if not len(train):
        raise BadInput(f"{name} has no training example of {raw.name}: use fewer clients or other parts")
    return Split(train, val, test, stratified=False)


def _graph_numbers(options: partitions.OneDataset, graphs: Int, count: int) -> Int:
    """Return what one client was dealt, checked: a plug-in may have dealt it."""
    found = np.asarray(graphs)
    if found.ndim != 1 or (
        found.size and (found.dtype.kind not in "iu" or not 0 <= found.min() <= found.max() < count)
    ):
        raise BadInput(f"partition '{options.name}' deals what are no graph numbers from 0 to {count - 1}")
    return found.astype(np.int64)


def _refuse_repeats(options: partitions.OneDataset, names: Sequence[str], dealt: Sequence[Int]) -> None:
    """Raise BadInput where a graph was dealt twice: it would be trained on, and judged by."""
    every, owners = np.concatenate(dealt), np.repeat(names, [len(held) for held in dealt])
    numbers, times = np.unique(every, return_counts=True)
    repeated = numbers[times > 1]
    if len(repeated):
        first, second = owners[every == repeated[0]][:2]
        to = f"twice to {first}" if first == second else f"to {first} and to {second}"
        raise BadInput(
            f"partition '{options.name}' deals graph {repeated[0]} {to}: it may be trained on and judged by; "
            "deal each once, or define overlaps() that returns True"
        )


def of_population(options: partitions.PopulationOptions, raws: Sequence[RawGraphs]) -> Partition:
    """Return the places of a round, and the population that their clients are sampled from."""
    population, held = places(options, raws)
    return replace(_split_before(raws[0], held, "place"), population=population)


def split_then_dealt(options: partitions.FedGraphNN, raws: Sequence[RawGraphs]) -> Partition:
    """Return clients of FedGraphNN's setting, whose parts were split before they were dealt out."""
    parts = fedgraphnn.deal(options, raws[0])
    return _split_before(raws[0], parts, "client", options.split == "stratified")


def _split_before(
    raw: RawGraphs, parts: Sequence[tuple[Int, Int, Int]], kind: str, stratified: bool = False
) -> Partition:
    """Return clients, or places of a round, that hold these training, validation and test graphs."""
    held = zip(_names(len(parts), kind), parts, strict=True)
    return Partition(tuple(_placed(ClientSplit(name, 0, *own, stratified), raw) for name, own in held))


def _names(count: int, kind: str = "client") -> list[str]:
    width = max(2, len(str(count - 1)))
    return [f"{kind}-{client:0{width}d}" for client in range(count)]


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
    centre = ClientSplit("centre", held[0].dataset, train, val, test, kept, nodes)
    return replace(partition, clients=(centre,))


def per_dataset(options: partitions.PerDataset, raws: Sequence[RawGraphs]) -> Partition:
    """Return a client for each dataset."""
    clients = []
    for index, raw in enumerate(raws):
        labels, _ = strata(raw)
        held = np.arange(len(labels))
        if options.tiny:
            held = subsample(held, labels, _TINY_GRAPHS, options.seed, raw.name)
        clients.append(_client(options, raw, index, raw.name, held))
    return Partition(tuple(clients))
