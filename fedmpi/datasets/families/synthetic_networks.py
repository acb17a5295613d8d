"""Generated networks whose nodes or pairs are the examples, for runs that need no files."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedmpi.datasets.families.recommender import packed
from fedmpi.datasets.family import Family
from fedmpi.datasets.networks import rows_of_ones, undirected
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.seeds import Purpose, generator, key

NODES, RATINGS, TRIPLES = "synthetic-nodes", "synthetic-ratings", "synthetic-triples"
_WORDS = 8
"""Words of a node."""
_TYPICAL = 0.5
"""Share of a node's words that are those of its class."""


class NetworkSize(BaseModel):
    """Size of a generated network."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    nodes: int = Field(600, ge=20, le=5_000_000)
    """Number of nodes."""
    classes: int = Field(4, ge=2, le=100)
    """Classes of nodes; categories of items; relations."""
    words: int = Field(200, ge=8, le=1_000_000)
    """Width of the nodes' features."""
    degree: int = Field(5, ge=1, le=1000)
    """Mean number of neighbours."""
    homophily: float = Field(0.7, ge=0, le=1)
    """Share of the edges that join nodes of one class whatever their number."""
    seed: int = Field(0, ge=0)
    """Of the data, apart from the run's seed and the split's."""


def nodes(size: NetworkSize) -> RawGraphs:
    """Return one graph whose nodes have classes: a planted partition, with words that tell the class."""
    rng = generator(key(size.seed, Purpose.DATA))
    labels = rng.integers(size.classes, size=size.nodes)
    by_class = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_class], np.arange(size.classes + 1))
    first = rng.integers(size.nodes, size=size.nodes * size.degree // 2)
    second = _partners(rng, first, labels, by_class, starts, size)
    node = np.repeat(np.arange(size.nodes), _WORDS)
    words = rng.integers(size.words, size=len(node))
    block = max(1, size.words // size.classes)
    typical = rng.random(len(node)) < _TYPICAL
    words[typical] = labels[node[typical]] * block + words[typical] % block
    topology = undirected(first, second, np.array([0, size.nodes]))
    features = rows_of_ones(node, np.minimum(words, size.words - 1), (size.nodes, size.words))
    names = tuple(str(label) for label in range(size.classes))
    return RawGraphs(NODES, topology, None, (), features, labels, names, places=np.arange(size.nodes))


def _partners(
    rng: np.random.Generator, first: Int, labels: Int, by_class: Int, starts: Int, size: NetworkSize
) -> Int:
    """Return the other end of each edge: a node of the same class with the chance `homophily`, else any."""
    own = labels[first]
    inside = starts[own] + (rng.random(len(first)) * (starts[own + 1] - starts[own])).astype(np.int64)
    same = rng.random(len(first)) < size.homophily
    return np.where(same, by_class[inside], rng.integers(size.nodes, size=len(first)))


def ratings(size: NetworkSize) -> RawGraphs:
    """Return ratings from 1 to 5 of items by users, a graph for each category of items.

    Half of the nodes are users; a rating is what the tastes of user and item make of it, and noise.
    """
    rng = generator(key(size.seed, Purpose.DATA, 1))
    users = size.nodes // 2
    tastes = rng.normal(size=(size.nodes, 2))
    pairs = np.unique(
        rng.integers(users, size=size.nodes * size.degree // 2) * size.nodes
        + rng.integers(users, size.nodes, size=size.nodes * size.degree // 2)
    )
    user, item = pairs // size.nodes, pairs % size.nodes
    liking = 3.5 + (tastes[user] * tastes[item]).sum(axis=1) + 0.5 * rng.normal(size=len(pairs))
    category = (item - users) % size.classes
    return packed(RATINGS, user, item, np.clip(np.round(liking), 1, 5), category, size.nodes)


def triples(size: NetworkSize) -> RawGraphs:
    """Return triples of a graph whose relations join groups of entities: 80, 10 and 10 percent by part."""
    rng = generator(key(size.seed, Purpose.DATA, 2))
    group = rng.integers(size.classes, size=size.nodes)
    by_group = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[by_group], np.arange(size.classes + 1))
    head = rng.integers(size.nodes, size=size.nodes * size.degree // 2)
    relation = rng.integers(size.classes, size=len(head))
    goal = (group[head] + relation) % size.classes
    inside = starts[goal] + (rng.random(len(head)) * (starts[goal + 1] - starts[goal])).astype(np.int64)
    tail = np.where(
        rng.random(len(head)) < size.homophily, by_group[np.minimum(inside, size.nodes - 1)], head[::-1]
    )
    parts = np.sort(np.where(np.arange(len(head)) % 10 < 8, 0, 1 + np.arange(len(head)) % 2)).astype(np.int8)
    trained = parts == 0
    topology = undirected(head[trained], tail[trained], np.array([0, size.nodes]))
    names = tuple(f"relation-{number}" for number in range(size.classes))
    places = np.stack([head, tail], axis=1)
    return RawGraphs(TRIPLES, topology, None, (), None, relation, names, places=places, parts=parts)


class NetworkOptions(DatasetOptions):
    """Dataset options of generated networks."""

    added: ClassVar[frozenset[str]] = DatasetOptions.added | {"network"}

    network: NetworkSize = NetworkSize()
    """Size of the generated network."""


class _Generated(Family):
    """One network, named as its family, of the size that the options ask for."""

    prepared = False
    edge_attributes = False
    make: ClassVar[staticmethod[[NetworkSize], RawGraphs]]
    Options = NetworkOptions

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return about the sizes of the network."""
        assert isinstance(options, NetworkOptions)
        size, regression = options.network, self.labels == "regression"
        graphs, words = (size.classes, 0) if regression else (1, size.words * (self.examples == "node"))
        classes, edges = 1 if regression else size.classes, size.nodes * size.degree
        return [DatasetFacts(self.name, graphs, classes, 0, words, None, size.nodes, edges)]

    def generate(self, options: DatasetOptions) -> tuple[RawGraphs, ...]:
        """Return the network."""
        assert isinstance(options, NetworkOptions)
        return (self.make(options.network),)


class SyntheticNodes(_Generated):
    """A generated network whose nodes have classes."""

    name, names = NODES, (NODES,)
    examples = "node"
    make = staticmethod(nodes)


class SyntheticRatings(_Generated):
    """Generated ratings of items by users."""

    name, names = RATINGS, (RATINGS,)
    examples, labels = "edge", "regression"
    make = staticmethod(ratings)


class SyntheticTriples(_Generated):
    """Generated triples whose relations are predicted."""

    name, names = TRIPLES, (TRIPLES,)
    examples = "edge"
    make = staticmethod(triples)
