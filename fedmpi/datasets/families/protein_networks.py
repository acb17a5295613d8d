"""PPI, whose nodes have several yes-or-no labels."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets.family import Family
from fedmpi.datasets.protein_networks import check_networks, read_networks
from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs


class ProteinNetworks(Family):
    """One archive; its sizes after clean-up are not known, since no copy was at hand."""

    name: ClassVar[str] = "ppi"
    examples: ClassVar[ExampleKind] = "node"
    title: ClassVar[str] = "Protein interactions: multi-label node classification"
    names: ClassVar[Collection[str]] = ("PPI",)
    upstream: ClassVar[str] = "https://data.dgl.ai/dataset"
    columns: ClassVar[tuple[str, ...]] = ("name", "task", "graphs", "nodes", "features", "labels")

    def task(self, name: str) -> LabelKind:
        """Return "multi-task"."""
        return "multi-task"

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return task and published sizes."""
        return name, self.task(name), 24, 56944, 50, 121

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return "ppi.zip"

    def check(self, path: Path, name: str) -> None:
        """Check that an archive holds the files needed."""
        check_networks(path)

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read an archive; see `fedmpi.datasets.protein_networks.read_networks`."""
        assert path is not None
        return read_networks(path, name)
