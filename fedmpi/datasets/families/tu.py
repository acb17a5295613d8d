"""Graph classification in TU format: TU Dortmund's datasets, and groups of them that papers use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets import tu
from fedmpi.datasets.family import DATASET_NAME, Family
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DIGESTS, GROUPS, KNOWN


class TuDatasets(Family):
    """Archives in TU format; any name of letters and digits may be one, `KNOWN` is what was measured.

    Cite Morris et al., "TUDataset" (2020).
    """

    name = "tu"
    edge_attributes = False
    title = "TU Dortmund: graph classification"
    facts = KNOWN
    names = KNOWN
    digests = DIGESTS
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = GROUPS
    folder = "tudataset"
    upstream = "https://www.chrsmrrs.com/graphkerneldatasets"
    columns = ("name", "graphs", "classes", "nodes", "edges", "labels", "attributes")

    def takes(self, name: str) -> bool:
        """Return whether an archive can have this name."""
        return DATASET_NAME.fullmatch(name) is not None

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return f"{name}.zip"

    def check(self, path: Path, name: str) -> None:
        """Check, without unpacking, that an archive is whole and holds the files needed."""
        tu.check_archive(path, name)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read an archive; see `fedmpi.datasets.tu.read_archive`."""
        return tu.read_archive(path, name, name)
