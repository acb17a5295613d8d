"""Citation and co-author networks, whose nodes are the examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets.citation_networks import check_network, read_network
from fedmpi.datasets.network_family import NetworkFamily
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DatasetFacts


def _network(name: str, nodes: int, edges: int, words: int, classes: int, degree: int | None) -> DatasetFacts:
    """Return the facts of one graph; no digest, since only copies that were saved anew were at hand."""
    return DatasetFacts(name, 1, classes, 0, words, degree, nodes, edges, digest="")


class _Networks(NetworkFamily):
    """One ``.npz`` file for each name."""

    def check(self, path: Path, name: str) -> None:
        """Check that an archive holds the arrays needed."""
        check_network(path)

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read an archive; see `fedmpi.datasets.citation_networks.read_network`."""
        assert path is not None
        return read_network(path, self.facts[name])


_CITATION = (
    _network("CitationFull-Cora", 19793, 126842, 8710, 70, None),
    _network("CitationFull-Cora_ML", 2995, 16316, 2879, 7, 246),
    _network("CitationFull-CiteSeer", 4230, 10674, 602, 6, 85),
    _network("CitationFull-DBLP", 17716, 105734, 1639, 4, 339),
    _network("CitationFull-PubMed", 19717, 88648, 500, 3, None),
)


class CitationFull(_Networks):
    """Papers linked by citations."""

    name: ClassVar[str] = "citation-full"
    title: ClassVar[str] = "CitationFull: citation networks, node classification"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {each.name: each for each in _CITATION}
    names: ClassVar[Collection[str]] = tuple(facts)
    folder: ClassVar[str] = "citation_full"
    upstream: ClassVar[str] = "https://github.com/abojchevski/graph2gauss/raw/master/data"

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return f"{name.removeprefix('CitationFull-').lower()}.npz"


_COAUTHOR = (
    _network("Coauthor-CS", 18333, 163788, 6805, 15, 136),
    _network("Coauthor-Physics", 34493, 495924, 8415, 5, 382),
)


class Coauthor(_Networks):
    """Authors linked by joint papers."""

    name: ClassVar[str] = "coauthor"
    title: ClassVar[str] = "Coauthor: co-author networks, node classification"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {each.name: each for each in _COAUTHOR}
    names: ClassVar[Collection[str]] = tuple(facts)
    upstream: ClassVar[str] = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return {"Coauthor-CS": "ms_academic_cs.npz", "Coauthor-Physics": "ms_academic_phy.npz"}[name]
