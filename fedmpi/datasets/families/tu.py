"""Graph classification in TU format: TU Dortmund's datasets, groups of them that papers use, own folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets import names, tu
from fedmpi.datasets.family import DATASET_NAME, Family
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.own import ASK, FILES, OwnData, task_of
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DIGESTS, GROUPS, KNOWN
from fedmpi.errors import BadInput


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


class OwnFolders(OwnData):
    """Own folders in TU format: ``./mydata/FOO`` holds ``FOO_A.txt`` and so on."""

    name = "own"

    def takes(self, name: str) -> bool:
        """Return whether a name is a path, and not that of a file."""
        return names.is_path(name) and not name.partition(ASK)[0].endswith(FILES)

    def sources(self, name: str) -> list[Path]:
        """Return the files of a folder."""
        folder = self.path(name)
        return [folder / f"{folder.name}_{part}.txt" for part in (*tu.PARTS, *tu.OWN_PARTS)]

    def locate(self, name: str, mirror: Path | None) -> Path | None:
        """Return the folder, if it is there."""
        folder = self.path(name)
        return folder if folder.is_dir() else None

    def refuse_missing(self, name: str) -> None:
        """Say that there is no such folder."""
        if names.JOIN in name:
            raise BadInput(
                f"no folder {name}; folders of your own cannot be joined by {names.JOIN}: name one"
            )
        raise BadInput(f"no folder {name} and no group of that name{names.meant(name)}")

    def check(self, path: Path, name: str) -> None:
        """Check that the folder holds the files needed, and what these say of each graph."""
        tu.folder_clients(path, path.name, self.labels_in(path, name))

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of the graphs."""
        return tu.folder_labels(path, path.name, task_of(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the folder; see `fedmpi.datasets.tu.read_folder`."""
        return tu.read_folder(path, path.name, name, task_of(name))
