"""Heterogeneity between clients and within clusters of clients (GCFL, Figure 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs
from fedmpi.heterogeneity import distances
from fedmpi.heterogeneity.agreement import adjusted_rand_index
from fedmpi.heterogeneity.pairs import Pairs
from fedmpi.heterogeneity.streams import Draw, stream
from fedmpi.heterogeneity.walks import embed

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOST_PAIRS_OF_TWO_CLIENTS = 20_000
MOST_PAIRS_OF_A_TABLE = 10_000_000
"""Where there are more pairs, so many are drawn, with replacement."""

DRAWS = 100
"""Random partitions that a figure is set beside."""

_ROUNDING = 1e-12


class Client(Protocol):
    """What is read of a client: `fedmpi.partition.partition.ClientSplit` has it."""

    @property
    def dataset(self) -> int:
        """Index of its dataset."""

    @property
    def graphs(self) -> Int:
        """Numbers of all its graphs in that dataset, one for each time that it holds a graph."""


@dataclass(frozen=True)
class PairTable:
    """Mean distance over pairs of graphs, by the clients that hold them.

    Symmetric; the diagonal is of pairs within one client, each pair once.

    Attributes
    ----------
    mean : float64 [n, n]
        NaN where there is no pair.
    pairs : int64 [n, n]
        How many pairs there are, whether looked at or not.
    standard_error : float64 [n, n]
        Of the mean, from drawing pairs; 0 where every pair was looked at.
    """

    mean: Float
    pairs: Int
    standard_error: Float


@dataclass(frozen=True)
class ClientTables:
    """Both kinds of heterogeneity of n clients; `left_out`: graphs without edges of each, int64 [n]."""

    structure: PairTable
    features: PairTable
    left_out: Int


@dataclass(frozen=True)
class Level:
    """A mean over pairs of graphs.

    Attributes
    ----------
    mean : float
        NaN where there is no pair.
    standard_error : float
        From drawing pairs; 0 where every pair was looked at.
    pairs : int
        Pairs that the mean is over, whether looked at or not.
    """

    mean: float
    standard_error: float
    pairs: int


@dataclass(frozen=True)
class Control:
    """A figure of random partitions of the clients into clusters of the same sizes.

    Attributes
    ----------
    mean, std : float
        Mean and standard deviation (ddof 0) over the draws.
    as_low, as_high : float
        Share of the draws whose figure is at most, at least, that of the partition in question.
    """

    mean: float
    std: float
    as_low: float
    as_high: float

    @property
    def constant(self) -> bool:
        """Whether all draws are alike, as where all clients share one cluster, or none do."""
        return self.std < _ROUNDING


def client_tables(
    clients: Sequence[Client],
    raws: Sequence[RawGraphs],
    options: distances.WalkOptions | None = None,
    features: str = "original",
) -> ClientTables:
    """Return how far graphs of each two clients, and of each one, are apart.

    The measures are those of `fedmpi.heterogeneity.distances.heterogeneity`. A graph that is held
    twice, as in an overlapping partition, counts twice, at distance 0 from its copy.

    Parameters
    ----------
    clients : sequence of Client
        The n clients of a partition.
    raws : sequence of RawGraphs
        Its datasets.
    options : WalkOptions, optional
        The walks; their seed is also that of drawn pairs.
    features : str
        One of `fedmpi.datasets.options.FEATURES`.
    """
    options = options or distances.WalkOptions()
    walks = [embed(raw.topology, options.length, options.seed, options.walks) for raw in raws]
    histograms = [distances.similarity_histograms(raw, features) for raw in raws]
    structure = [walks[client.dataset][client.graphs] for client in clients]
    return ClientTables(
        structure=pair_table(structure, distances.STRUCTURE, options.seed),
        features=pair_table(
            [histograms[client.dataset][client.graphs] for client in clients],
            distances.FEATURES,
            options.seed,
        ),
        left_out=np.array([int(np.isnan(rows).any(axis=1).sum()) for rows in structure], np.int64),
    )


def pair_table(held: Sequence[Float], measure: distances.Measure, seed: int) -> PairTable:
    """Return the mean of a measure over the pairs of rows of each two clients, and within each one.

    Parameters
    ----------
    held : sequence of float64 [G_i, P]
        Each client's distributions; rows of NaN are left out.
    measure : Measure
        What is taken of each pair.
    seed : int
        Seed of drawn pairs.
    """
    count = len(held)
    kept = [rows[~np.isnan(rows).any(axis=1)] for rows in held]
    most = min(MOST_PAIRS_OF_TWO_CLIENTS, max(2, 2 * MOST_PAIRS_OF_A_TABLE // (count * (count + 1))))
    mean, error = np.full((count, count), np.nan), np.full((count, count), np.nan)
    pairs = np.zeros((count, count), np.int64)
    for one in range(count):
        for other in range(one + 1):
            rows = [kept[one]] if one == other else [kept[other], kept[one]]
            found = distances.spread(rows, measure, seed, most, (other, one))
            for cell in ((one, other), (other, one)):
                mean[cell], error[cell] = found.mean, found.standard_error
                pairs[cell] = Pairs(tuple(len(part) for part in rows)).count
    return PairTable(mean, pairs, error)


def within(table: PairTable, group: Int, own: bool = True) -> Level:
    """Return the mean over all pairs of graphs whose clients share a cluster.

    Parameters
    ----------
    table : PairTable
        Of n clients.
    group : int64 [n]
        Cluster of each client; all in one for the heterogeneity before clustering.
    own : bool
        Whether pairs within one client count. Clients alone in a cluster have no others.
    """
    return _level(table, group[:, None] == group[None, :], own)


def within_one(table: PairTable, members: Mask, own: bool = True) -> Level:
    """Return the same for the one cluster of the clients `members`, bool [n]."""
    return _level(table, members[:, None] & members[None, :], own)


def _level(table: PairTable, together: Mask, own: bool) -> Level:
    chosen = np.tril(together & (table.pairs > 0), 0 if own else -1)
    pairs = table.pairs[chosen]
    total = int(pairs.sum())
    if not total:
        return Level(math.nan, math.nan, 0)
    shares = pairs / total
    error = float(np.sqrt(((shares * table.standard_error[chosen]) ** 2).sum()))
    return Level(float(shares @ table.mean[chosen]), error, total)


def random_partitions(group: Int, seed: int, draws: int = DRAWS) -> Int:
    """Return partitions of the clients at random into clusters of the same sizes, int64 [draws, n]."""
    rng = stream(seed, Draw.PARTITIONS, len(group))
    return rng.permuted(np.tile(group, (draws, 1)), axis=1)


def control(figure: Callable[[Int], float], group: Int, seed: int, draws: int = DRAWS) -> Control:
    """Return what a figure of a partition is for random ones of the same sizes.

    Parameters
    ----------
    figure : function of int64 [n]
        Takes the cluster of each client.
    group : int64 [n]
        The partition in question.
    seed, draws : int
        Seed and number of the random ones.
    """
    found = figure(group)
    values = np.array([figure(drawn) for drawn in random_partitions(group, seed, draws)])
    return Control(
        mean=float(values.mean()),
        std=float(values.std()),
        as_low=_share(values <= found + _ROUNDING, found),
        as_high=_share(values >= found - _ROUNDING, found),
    )


def _share(hits: Mask, found: float) -> float:
    return math.nan if math.isnan(found) else float(hits.mean())


@dataclass(frozen=True)
class Agreement:
    """Adjusted Rand index of clusters and domains, beside that of random partitions of the same sizes.

    The index is 1 where clusters are the domains, and 0 on average over random partitions.
    """

    adjusted_rand_index: float
    random: Control


def agreement(group: Int, domains: Sequence[str], seed: int, draws: int = DRAWS) -> Agreement:
    """Return how well clusters and domains agree.

    Parameters
    ----------
    group : int64 [n]
        Cluster of each client.
    domains : sequence of str, length n
        Domain of each client's dataset.
    seed, draws : int
        Seed and number of the random partitions.
    """

    def index(clusters: Int) -> float:
        return adjusted_rand_index(clusters, domains)

    return Agreement(index(group), control(index, group, seed, draws))
