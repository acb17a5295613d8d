"""Graph classification in TU format: TU Dortmund's datasets, groups of them that papers use, own folders."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.config.documents import short
from fedmpi.datasets import names, tu
from fedmpi.datasets.family import DATASET_NAME, Family
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DIGESTS, GROUPS, KNOWN
from fedmpi.errors import BadInput


class TuDatasets(Family):
    """Archives in TU format; any name of letters and digits may be one, `KNOWN` is what was measured.

    Cite Morris et al., "TUDataset" (2020).
    """

    name = "tu"
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


class OwnFolders(Family):
    """Own folders in TU format: ``./mydata/FOO`` holds ``FOO_A.txt`` and so on."""

    name = "own"

    def takes(self, name: str) -> bool:
        """Return whether a name is a path."""
        return names.is_path(name)

    def file(self, name: str) -> str:
        """Return the folder's name, with which its files begin."""
        return _folder(name).name

    def locate(self, name: str, mirror: Path | None) -> Path | None:
        """Return the folder, if it is there."""
        folder = _folder(name)
        return folder if folder.is_dir() else None

    def refuse_missing(self, name: str) -> None:
        """Say that there is no such folder."""
        if names.JOIN in name:
            raise BadInput(
                f"no folder {name}; folders of your own cannot be joined by {names.JOIN}: name one"
            )
        raise BadInput(f"no folder {name} and no group of that name{names.meant(name)}")

    def check(self, path: Path, name: str) -> None:
        """Check that the folder holds the files needed and that none of these is empty."""
        tu.check_folder(path, path.name)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the folder; see `fedmpi.datasets.tu.read_folder`."""
        return tu.read_folder(path, path.name, name)

    def prepared_in(self, name: str) -> str:
        """Return a folder for this state of the files: edited ones ask for a new preparation."""
        folder = _folder(name)
        state = hashlib.blake2b(str(folder.resolve()).encode(), digest_size=8)
        for part in tu.PARTS:
            path = folder / f"{folder.name}_{part}.txt"
            if path.is_file():
                state.update(f"{part} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
        return f"{self.place}/{folder.name}-{state.hexdigest()}"


def _folder(name: str) -> Path:
    try:
        folder = Path(name).expanduser().absolute()
        folder.exists()
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"'{short(name)}' cannot be the path of a dataset: {reason}") from error
    return folder
