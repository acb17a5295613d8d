"""Ratings of items by users, a graph for each category of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets.network_family import NetworkFamily
from fedmpi.datasets.networks import refuse_other_sizes
from fedmpi.datasets.ratings import read_ratings
from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs
from fedmpi.datasets.tables import DatasetFacts

# fmt: off
_FACTS = (
    DatasetFacts(
        "Ciao", 28, 1, 0, 0, 1168, 144226, 539866,
        "955f565bea354892ab2e89b2a0f4be5e38dc1722720bef96cb94674bbbb150ab",
    ),
    DatasetFacts(
        "Epinions", 27, 1, 0, 0, 1742, 427254, 1793354,
        "16557a930d9c9db16fdd4b58c03f1ff5cd4045d28a3597b751653d9fede7fec4",
    ),
)
# fmt: on


class Recommender(NetworkFamily):
    """FedGraphNN's archives, which cannot be downloaded from anywhere."""

    examples: ClassVar[ExampleKind] = "edge"
    name: ClassVar[str] = "recommender"
    title: ClassVar[str] = "Recommender systems: a graph per category, regression of ratings"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {each.name: each for each in _FACTS}
    names: ClassVar[Collection[str]] = tuple(facts)
    folder: ClassVar[str] = "recsys"
    columns: ClassVar[tuple[str, ...]] = ("name", "graphs", "nodes", "edges", "ratings")

    def task(self, name: str) -> LabelKind:
        """Return "regression"."""
        return "regression"

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the sizes of a dataset; every rating is an edge in both directions."""
        facts = self.facts[name]
        return name, facts.graphs, facts.nodes, facts.directed_edges, facts.directed_edges // 2

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return f"fedgraphnn_{name.lower()}.tar.gz"

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read an archive; see `fedmpi.datasets.ratings.read_ratings`."""
        assert path is not None
        raw = read_ratings(path, name)
        refuse_other_sizes(raw, self.facts[name], str(path))
        return raw
