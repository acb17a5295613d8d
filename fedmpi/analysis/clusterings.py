"""The clusterings of a run, and the heterogeneity of the graphs within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from fedmpi.datasets.loading import digest_of, load_all, options_class
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.agreement import domains_of
from fedmpi.heterogeneity.clusters import (
    Agreement,
    ClientTables,
    Control,
    Level,
    PairTable,
    agreement,
    client_tables,
    control,
    within,
)
from fedmpi.heterogeneity.distances import WalkOptions
from fedmpi.store.reader import Run
from fedmpi.store.schema import canonical_json

Int = npt.NDArray[np.int64]

KINDS = ("structure", "features")
"""Kinds of heterogeneity."""


@dataclass(frozen=True)
class HeldGraphs:
    """The graphs of one client: index of its dataset, and graph numbers in it."""

    dataset: int
    graphs: Int


@dataclass(frozen=True)
class Compared:
    """A level of heterogeneity beside that of random partitions of the same sizes."""

    found: Level
    random: Control


@dataclass(frozen=True)
class Scopes:
    """Over all pairs of graphs in a cluster, and over those of different clients only."""

    every: Compared
    different: Compared


@dataclass(frozen=True)
class Clustering:
    """One clustering of a run's clients.

    Attributes
    ----------
    round : int
        The first round that ended with it, counted from 1.
    group : int64 [n]
        Cluster of each client.
    clusters : tuple of tuple of str
        Names of the clients, the largest cluster first.
    scopes : mapping
        By kind of heterogeneity, of `KINDS`.
    agreement : Agreement or None
        With the datasets' domains; None where these are fewer than two, or not known.
    """

    round: int
    group: Int
    clusters: tuple[tuple[str, ...], ...]
    scopes: Mapping[str, Scopes]
    agreement: Agreement | None


@dataclass(frozen=True)
class ClusteredRun:
    """A run's clusterings in order of rounds.

    Attributes
    ----------
    run : Run
    before : Clustering
        All clients in one cluster, as round 0; its random partitions are itself.
    clusterings : tuple of Clustering
        One at least.
    left_out : int
        Graphs without edges, which have neither walks nor linked nodes.
    """

    run: Run
    before: Clustering
    clusterings: tuple[Clustering, ...]
    left_out: int


class TableMaker:
    """Makes the tables of runs' clients, once for all runs of one partition."""

    def __init__(self, source: DataSource, options: WalkOptions) -> None:
        self.options = options
        self._source = source
        self._made: dict[object, ClientTables] = {}

    def of(self, run: Run) -> ClientTables:
        """Return the heterogeneity between and within the run's clients.

        Raises
        ------
        BadInput
            The record has no partition, the data at hand are not those of the run, or its clients hold
            nodes or edges.
        """
        clients = _held(run)
        graphs = tuple((client.dataset, client.graphs.tobytes()) for client in clients)
        key = canonical_json(run.config["dataset"]), graphs
        if key not in self._made:
            raws = datasets_of(run, self._source)
            for raw in raws:
                if raw.places is not None and raw.graph_classes is None:
                    held_there = f"its clients hold {raw.examples}s of {raw.name}; leave it out"
                    raise BadInput(f"{run.folder}: distances are those of graphs, {held_there}")
            self._made[key] = client_tables(clients, raws, self.options, _options(run).features)
        return self._made[key]


def _held(run: Run) -> tuple[HeldGraphs, ...]:
    """Return the graphs of each client, from the record: training, validation and test."""
    stored = run.partition
    if "train_index" not in stored:
        raise BadInput(f"{run.folder}: the record does not say which graphs its clients hold")
    names = ("train", "val", "test")
    parts = [np.split(stored[f"{part}_index"], stored[f"{part}_ptr"][1:-1]) for part in names]
    places = zip(stored["dataset_index"].tolist(), *parts, strict=True)
    return tuple(HeldGraphs(dataset, np.concatenate(graphs)) for dataset, *graphs in places)


def _options(run: Run) -> DatasetOptions:
    try:
        return options_class(run.config["dataset"]).model_validate(run.config["dataset"])
    except ValidationError as error:
        raise BadInput(f"{run.folder}: a dataset with settings that this fedmpi does not know") from error


def datasets_of(run: Run, source: DataSource) -> tuple[RawGraphs, ...]:
    """Return the datasets of a run, prepared where they were not yet.

    Raises
    ------
    BadInput
        They cannot be had, or their content is not that which the run was made with.
    """
    options = _options(run)
    source.prepare(options.name)
    raws = load_all(options, source)
    for raw, line in zip(raws, run.partition["dataset_digests"].tolist(), strict=True):
        here = digest_of(raw, options, source)
        if not line.endswith(f" {here}"):
            raise BadInput(
                f"{run.folder}: dataset {raw.name} at hand is not the one that the run was made with "
                f"(digest {here[:16]}, recorded {line.rpartition(' ')[2][:16]}): use the same data"
            )
    return raws


def changes(group: Int) -> list[tuple[int, Int]]:
    """Return the distinct clusterings in order: round (1-based) after which each came, and clusters [n].

    Parameters
    ----------
    group : int [R, n]
        Cluster of each client after each round.
    """
    new = [0, *(np.flatnonzero((np.diff(group, axis=0) != 0).any(axis=1)) + 1)] if len(group) else []
    return [(int(row) + 1, np.asarray(group[row], np.int64)) for row in new]


def clustered(run: Run, maker: TableMaker) -> ClusteredRun:
    """Return the clusterings of a run with all their figures; the seed is that of the walks.

    Raises
    ------
    BadInput
        No round is finished yet; and see `TableMaker.of`.
    """
    if not run.rounds_completed:
        raise BadInput(f"{run.folder}: no round is finished, so there are no clusters yet")
    tables, seed = maker.of(run), maker.options.seed
    domains = domains_of(run.partition["datasets"].tolist())

    def figures(number: int, group: Int) -> Clustering:
        return Clustering(
            round=number,
            group=group,
            clusters=named(run.clients, group),
            scopes={kind: _scopes(getattr(tables, kind), group, seed) for kind in KINDS},
            agreement=agreement(group, domains, seed) if domains else None,
        )

    return ClusteredRun(
        run=run,
        before=figures(0, np.zeros(len(run.clients), np.int64)),
        clusterings=tuple(figures(number, group) for number, group in changes(run.results["group"])),
        left_out=int(tables.left_out.sum()),
    )


def named(clients: Sequence[str], group: Int) -> tuple[tuple[str, ...], ...]:
    """Return the clusters by the names of their clients, the largest first, then by first client."""
    members = [np.flatnonzero(group == cluster).tolist() for cluster in np.unique(group)]
    members.sort(key=lambda places: (-len(places), places[0]))
    return tuple(tuple(clients[place] for place in places) for places in members)


def _scopes(table: PairTable, group: Int, seed: int) -> Scopes:
    def compared(own: bool) -> Compared:
        random = control(lambda clusters: within(table, clusters, own).mean, group, seed)
        return Compared(within(table, group, own), random)

    return Scopes(compared(True), compared(False))
