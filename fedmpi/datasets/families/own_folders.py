"""Folders of one's own: graphs in TU format, and in the raw format of the Open Graph Benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.datasets import names, ogb, tu_folders
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.own import FILES, OwnData, task_of
from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput


class OwnFolders(OwnData):
    """Own folders in TU format: ``./mydata/FOO`` holds ``FOO_A.txt`` and so on."""

    name = "own"

    def takes(self, name: str) -> bool:
        """Return whether a name is a path, not that of a file, and not that of a folder of another format."""
        return self._is_folder(name) and ogb.holds(self.path(name)) is None

    def _is_folder(self, name: str) -> bool:
        return names.is_path(name) and not name.partition(names.ASK)[0].endswith(FILES)

    def sources(self, name: str) -> Sequence[Path]:
        """Return the files of a folder."""
        folder = self.path(name)
        return [folder / f"{folder.name}_{part}.txt" for part in tu_folders.PARTS]

    def locate(self, name: str, mirror: Path | None) -> Path | None:
        """Return the folder, if it is there."""
        folder = self.path(name)
        return folder if folder.is_dir() else None

    def refuse_missing(self, name: str) -> None:
        """Say that there is no such folder."""
        raise BadInput(f"no folder {name} and no group of that name{names.meant(name)}")

    def check(self, path: Path, name: str) -> None:
        """Check that the folder holds the files needed, and what these say of each graph."""
        tu_folders.folder_clients(path, path.name, self.labels_in(path, name))

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of the graphs."""
        return tu_folders.folder_labels(path, path.name, task_of(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the folder; see `fedmpi.datasets.tu_folders.read_folder`."""
        return tu_folders.read_folder(path, path.name, name, task_of(name))


class OgbGraphs(OwnFolders):
    """Own folders in OGB's format: ``./ogbg_mine`` holds ``raw/graph-label.csv.gz`` and so on."""

    name = "own-ogb-graphs"

    def takes(self, name: str) -> bool:
        """Return whether a name is the path of such a folder."""
        return self._is_folder(name) and ogb.holds(self.path(name)) == self.examples

    def sources(self, name: str) -> Sequence[Path]:
        """Return the files of a folder."""
        return list(self._folder(name).files())

    def _folder(self, name: str) -> ogb.Folder:
        return ogb.folder_of(self.path(name), name, self.examples)

    def check(self, path: Path, name: str) -> None:
        """Check all of a folder."""
        self.read(path, name)

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of the graphs or nodes."""
        return ogb.labels_in(self._folder(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the folder; see `fedmpi.datasets.ogb.read`."""
        return ogb.read(self._folder(name), name)


class OgbNodes(OgbGraphs):
    """Own folders in OGB's format, whose nodes have labels: ``raw/node-label.csv.gz``."""

    name = "own-ogb-nodes"
    examples = "node"
