"""Generated networks, which need no files."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from fedmpi.datasets.family import Family
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import ExampleKind, RawGraphs
from fedmpi.datasets.synthetic_networks import NODES, NetworkSize, nodes
from fedmpi.datasets.tables import DatasetFacts


class NetworkOptions(DatasetOptions):
    """Dataset options of generated networks."""

    added: ClassVar[frozenset[str]] = DatasetOptions.added | {"network"}

    network: NetworkSize = NetworkSize()


class SyntheticNodes(Family):
    """A network whose nodes have classes."""

    name: ClassVar[str] = "synthetic-nodes"
    names: ClassVar[Collection[str]] = (NODES,)
    examples: ClassVar[ExampleKind] = "node"
    prepared: ClassVar[bool] = False
    Options = NetworkOptions

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return about the sizes of the network."""
        assert isinstance(options, NetworkOptions)
        size = options.network
        edges = size.nodes * size.degree
        return [DatasetFacts(NODES, 1, size.classes, 0, size.words, None, size.nodes, edges, digest="")]

    def generate(self, options: DatasetOptions) -> tuple[RawGraphs, ...]:
        """Return the network."""
        assert isinstance(options, NetworkOptions)
        return (nodes(options.network),)
