"""Knowledge graphs, whose triples are the examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets.network_family import NetworkFamily
from fedmpi.datasets.raw import ExampleKind, RawGraphs
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.datasets.triples import FILES, read_triples

# fmt: off
_FACTS = (
    DatasetFacts(
        "FB15k-237", 1, 237, 0, 0, 5983, 14541, 421892,
        "9449f5b2a1448ff487f109b1738471310d402d83186a7842dae0e90f98199260",
    ),
    DatasetFacts(
        "WN18RR", 1, 11, 0, 0, 482, 40943, 143664,
        "730798f02d02ffbd2c96b67fd51899b25b9de13c05995d914a974658f33e74d0",
    ),
    # From FedGraphNN's tables, for estimates: no copy of the training triples was at hand.
    DatasetFacts("YAGO3-10", 1, 37, 0, 0, None, 123182, 1548364, ""),
)
# fmt: on

_TRIPLES = {
    "FB15k-237": (272115, 17535, 20466),
    "WN18RR": (86835, 3034, 3134),
    "YAGO3-10": (1079040, 5000, 5000),
}
"""Training, validation, test."""

_FOLDERS = {"FB15k-237": "FB15k-237", "WN18RR": "WN18RR/original", "YAGO3-10": "other/YAGO3-10"}


class KnowledgeGraphs(NetworkFamily):
    """Three files each."""

    examples: ClassVar[ExampleKind] = "edge"
    name: ClassVar[str] = "knowledge-graph"
    title: ClassVar[str] = "Knowledge graphs: classification of relations"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {each.name: each for each in _FACTS}
    names: ClassVar[Collection[str]] = tuple(facts)
    folder: ClassVar[str] = "kg"
    upstream: ClassVar[str] = "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master"
    columns: ClassVar[tuple[str, ...]] = (
        *("name", "entities", "edges", "relations", "training", "validation", "test"),
    )

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the sizes of a graph and the triples of each part."""
        facts = self.facts[name]
        return name, facts.nodes, facts.directed_edges, facts.classes, *_TRIPLES[name]

    def files(self, name: str) -> tuple[str, ...]:
        """Return the names of the files, below the folder of the dataset."""
        return tuple(f"{_FOLDERS[name]}/{file}" for file in FILES)

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read the files; see `fedmpi.datasets.triples.read_triples`."""
        assert path is not None
        return read_triples(path / _FOLDERS[name], name)
