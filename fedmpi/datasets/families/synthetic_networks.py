"""Generated networks, which need no files."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from fedmpi.datasets.family import Family
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs
from fedmpi.datasets.synthetic_networks import (
    NODES,
    RATINGS,
    TRIPLES,
    NetworkSize,
    nodes,
    ratings,
    triples,
)
from fedmpi.datasets.tables import DatasetFacts


class NetworkOptions(DatasetOptions):
    """Dataset options of generated networks."""

    added: ClassVar[frozenset[str]] = DatasetOptions.added | {"network"}

    network: NetworkSize = NetworkSize()
    """Size of the generated network."""


class _Generated(Family):
    """One network, named as its family, of the size that the options ask for."""

    prepared: ClassVar[bool] = False
    make: ClassVar[staticmethod[[NetworkSize], RawGraphs]]
    Options = NetworkOptions

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return about the sizes of the network."""
        assert isinstance(options, NetworkOptions)
        size, regression = options.network, self.task(self.name) == "regression"
        graphs, words = (size.classes, 0) if regression else (1, size.words * (self.examples == "node"))
        classes, edges = 1 if regression else size.classes, size.nodes * size.degree
        return [DatasetFacts(self.name, graphs, classes, 0, words, None, size.nodes, edges, digest="")]

    def generate(self, options: DatasetOptions) -> tuple[RawGraphs, ...]:
        """Return the network."""
        assert isinstance(options, NetworkOptions)
        return (self.make(options.network),)


class SyntheticNodes(_Generated):
    """A generated network whose nodes have classes."""

    name: ClassVar[str] = NODES
    names: ClassVar[Collection[str]] = (NODES,)
    examples: ClassVar[ExampleKind] = "node"
    make = staticmethod(nodes)


class SyntheticRatings(_Generated):
    """Generated ratings of items by users."""

    name: ClassVar[str] = RATINGS
    names: ClassVar[Collection[str]] = (RATINGS,)
    examples: ClassVar[ExampleKind] = "edge"
    make = staticmethod(ratings)

    def task(self, name: str) -> LabelKind:
        """Return "regression"."""
        return "regression"


class SyntheticTriples(_Generated):
    """Generated triples whose relations are predicted."""

    name: ClassVar[str] = TRIPLES
    names: ClassVar[Collection[str]] = (TRIPLES,)
    examples: ClassVar[ExampleKind] = "edge"
    make = staticmethod(triples)
