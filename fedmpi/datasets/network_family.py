"""Families whose datasets are all known by their sizes, with nodes or pairs of nodes as examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from fedmpi.datasets.family import Family
from fedmpi.datasets.raw import ExampleKind
from fedmpi.datasets.tables import DatasetFacts

if TYPE_CHECKING:
    from fedmpi.datasets.options import DatasetOptions


class NetworkFamily(Family):
    """A subclass has `facts`, and `names` of the same datasets."""

    examples: ClassVar[ExampleKind] = "node"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {}
    columns: ClassVar[tuple[str, ...]] = ("name", "nodes", "edges", "features", "classes")

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the sizes of a dataset."""
        facts = self.facts[name]
        return name, facts.nodes, facts.directed_edges, facts.attribute_width, facts.classes

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return the sizes of a dataset."""
        return [self.facts[options.name]]

    def degree_max(self, name: str) -> int | None:
        """Return the largest degree of a dataset."""
        return self.facts[name].degree_max

    def digest(self, name: str) -> str:
        """Return the digest of a dataset."""
        return self.facts[name].digest
