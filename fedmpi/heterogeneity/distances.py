"""Structure and feature heterogeneity: distances over pairs of graphs (GCFL, Table 2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fedmpi.datasets.features import build
from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import GraphSet
from fedmpi.heterogeneity.pairs import Pairs
from fedmpi.heterogeneity.streams import Draw, stream
from fedmpi.heterogeneity.structure import graph_of_node, undirected
from fedmpi.heterogeneity.walks import embed

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

MOST_PAIRS = 1_000_000
"""Where there are more pairs, so many are drawn, with replacement."""

BINS = 20
"""Equal bins on [0, 1]; the last one holds 1."""

_NODES_AT_ONCE = 20_000

_PAIRS_AT_ONCE = 1 << 16
_LONGEST_WALK = 7
_MOST_WALKS = 1_000_000


@dataclass(frozen=True)
class Measure:
    """How far two distributions are apart: the Jensen-Shannon divergence, or its root, the distance."""

    root: bool
    natural: bool = False
    """Natural logarithm instead of base 2."""


STRUCTURE = Measure(root=True)
FEATURES = Measure(root=False)
AS_PUBLISHED = Measure(root=True, natural=True)
"""What fits Table 2's features best, whatever the text says: SciPy's `jensenshannon` as it comes."""


@dataclass(frozen=True)
class WalkOptions:
    """Length in steps of the anonymous walks, walks per graph (None: by the bound), seed.

    Raises
    ------
    BadInput
        Walks too short to have patterns, or more than a table of patterns or the memory can hold.
    """

    length: int = 4
    walks: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.length <= _LONGEST_WALK:
            raise BadInput(f"walks of length {self.length}: give 2 to {_LONGEST_WALK} steps")
        if self.walks is not None and not 1 <= self.walks <= _MOST_WALKS:
            raise BadInput(f"{self.walks} walks per graph: give 1 to {_MOST_WALKS} walks")


@dataclass(frozen=True)
class Spread:
    """A distance over pairs of graphs.

    Attributes
    ----------
    mean, std : float
        Mean and standard deviation (ddof 0) over the pairs looked at.
    pairs : int
        How many these are.
    standard_error : float
        Of the mean, from drawing pairs; 0 where every pair was looked at.
    left_out : int
        Graphs without edges, which have neither walks nor linked nodes.
    """

    mean: float
    std: float
    pairs: int
    standard_error: float
    left_out: int


@dataclass(frozen=True)
class Heterogeneity:
    """Heterogeneity within one dataset, or across several."""

    datasets: tuple[str, ...]
    structure: Spread
    features: Spread


def heterogeneity(
    raws: Sequence[RawGraphs], options: WalkOptions | None = None, as_published: bool = False
) -> Heterogeneity:
    """Return how far graphs differ: all pairs of one dataset, or all pairs from different datasets.

    Structure: Jensen-Shannon distance (square root) of anonymous walk embeddings. Features:
    Jensen-Shannon divergence of histograms of the similarity of linked nodes. Both base 2, in 0 .. 1.

    Parameters
    ----------
    raws : sequence of RawGraphs
        One dataset or more.
    options : WalkOptions, optional
        The walks; their seed is also that of drawn pairs.
    as_published : bool
        Measure both by `AS_PUBLISHED`.
    """
    options = options or WalkOptions()
    walks = [embed(raw.topology, options.length, options.seed, options.walks) for raw in raws]
    histograms = [similarity_histograms(raw) for raw in raws]
    return Heterogeneity(
        datasets=tuple(raw.name for raw in raws),
        structure=spread(walks, AS_PUBLISHED if as_published else STRUCTURE, options.seed),
        features=spread(histograms, AS_PUBLISHED if as_published else FEATURES, options.seed),
    )


def spread(
    sets: Sequence[Float], measure: Measure, seed: int, most: int = MOST_PAIRS, place: Sequence[int] = ()
) -> Spread:
    """Return a measure over pairs of rows.

    Parameters
    ----------
    sets : sequence of float64 [G_i, P]
        Distributions; rows of NaN are left out. One set: pairs within; more: pairs across.
    measure : Measure
        What is taken of each pair.
    seed : int
        Seed of the draw where there are more than `most` pairs.
    most : int
        Pairs to look at; where there are more, so many are drawn, with replacement.
    place : sequence of int
        Tells the draws of several calls apart, so that their errors are independent.
    """
    kept = [rows[~np.isnan(rows).any(axis=1)] for rows in sets]
    left_out = sum(len(rows) for rows in sets) - sum(len(rows) for rows in kept)
    pairs = Pairs(tuple(len(rows) for rows in kept))
    if not pairs.count:
        return Spread(math.nan, math.nan, 0, math.nan, left_out)
    if pairs.count > most:
        numbers = stream(seed, Draw.PAIRS, pairs.count, *place).integers(pairs.count, size=most)
    else:
        numbers = np.arange(pairs.count)
    values = _values(np.concatenate(kept), pairs, numbers)
    if measure.natural:
        values *= math.log(2)
    if measure.root:
        values = np.sqrt(values)
    std = float(values.std())
    error = std / math.sqrt(len(values)) if pairs.count > most else 0.0
    return Spread(float(values.mean()), std, len(values), error, left_out)


def divergence(p: Float, q: Float) -> Float:
    """Return the Jensen-Shannon divergence, base 2, of distributions along the last axis."""
    from scipy.special import entr  # takes a fifth of a second to import

    mixed = entr((p + q) / 2).sum(axis=-1)
    apart = (entr(p).sum(axis=-1) + entr(q).sum(axis=-1)) / 2
    bits: Float = np.clip((mixed - apart) / math.log(2), 0, 1)
    return bits


def _values(rows: Float, pairs: Pairs, numbers: Int) -> Float:
    """Return the divergence of the pairs `numbers`."""
    values = np.zeros(len(numbers))
    for first in range(0, len(numbers), _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        one, other = pairs.at(numbers[part])
        values[part] = divergence(rows[one], rows[other])
    return values


def similarity_histograms(raw: RawGraphs, features: str = "original") -> Float:
    """Return the share of each graph's edges in each bin of cosine similarity.

    By default features are the "original" ones: one-hot node labels, or one-hot degrees in sets that
    have neither labels nor attributes, so that a similarity is 0 or 1. A negative similarity (of
    attributes) counts as 0, and so does one with a zero vector.

    Parameters
    ----------
    raw : RawGraphs
        The dataset.
    features : str
        One of `fedmpi.datasets.options.FEATURES`.

    Returns
    -------
    float64 [G, BINS]
        Rows add up to 1; a row of NaN for a graph without edges.
    """
    part = np.asarray(raw.topology.graph_ptr[1:]) // _NODES_AT_ONCE
    bounds = [0, *(np.flatnonzero(np.diff(part)) + 1), raw.num_graphs]
    rows = [
        _histograms(build(raw, np.arange(first, last), features))
        for first, last in itertools.pairwise(bounds)
    ]
    return np.concatenate(rows)


def _histograms(graphs: GraphSet) -> Float:
    topology = undirected(graphs.topology)
    to, of = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr)), topology.columns
    norms = np.linalg.norm(graphs.features, axis=1, keepdims=True)
    unit = sparse.csr_array(graphs.features / np.where(norms > 0, norms, 1), dtype=np.float64)
    similarity = np.asarray(unit[to].multiply(unit[of]).sum(axis=1))
    slack = 1e-6  # float32 features: a vector's similarity to itself may fall just short of its bin
    bins = np.clip(np.floor(similarity * BINS + slack), 0, BINS - 1).astype(np.int64)
    cells = graph_of_node(topology)[to] * BINS + bins
    counts = np.bincount(cells, minlength=graphs.num_graphs * BINS).reshape(-1, BINS)
    totals = counts.sum(axis=1, keepdims=True)
    shares: Float = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return shares
