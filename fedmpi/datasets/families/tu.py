"""TU Dortmund's graph-classification datasets, and the groups of them that papers use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from fedmpi.datasets import tu
from fedmpi.datasets.download import UPSTREAM
from fedmpi.datasets.family import DATASET_NAME, Family
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import GROUPS, KNOWN, DatasetFacts

if TYPE_CHECKING:
    from fedmpi.datasets.options import DatasetOptions


class TuDatasets(Family):
    """Archives in TU format; any name of letters and digits may be one, `KNOWN` is what was measured."""

    name: ClassVar[str] = "tu"
    title: ClassVar[str] = "TU Dortmund: graph classification"
    names: ClassVar[Collection[str]] = KNOWN
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = GROUPS
    folder: ClassVar[str] = "tudataset"
    upstream: ClassVar[str] = UPSTREAM
    columns: ClassVar[tuple[str, ...]] = (
        *("name", "graphs", "classes", "nodes", "edges", "labels", "attributes"),
    )

    def takes(self, name: str) -> bool:
        """Return whether an archive can have this name."""
        return DATASET_NAME.fullmatch(name) is not None

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the sizes of a known dataset."""
        facts = KNOWN[name]
        sizes = (facts.graphs, facts.classes, facts.nodes, facts.directed_edges)
        return name, *sizes, facts.label_width, facts.attribute_width

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return the sizes of a known dataset."""
        return [KNOWN[options.name]] if options.name in KNOWN else []

    def degree_max(self, name: str) -> int | None:
        """Return the largest degree of a known dataset."""
        return KNOWN[name].degree_max if name in KNOWN else None

    def digest(self, name: str) -> str:
        """Return the digest of a known dataset."""
        return KNOWN[name].digest if name in KNOWN else ""

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return f"{name}.zip"

    def check(self, path: Path, name: str) -> None:
        """Check, without unpacking, that an archive is whole and holds the files needed."""
        tu.check_archive(path, name)

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read an archive; see `fedmpi.datasets.tu.read_archive`."""
        assert path is not None
        return tu.read_archive(path, name, name)
