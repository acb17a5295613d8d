"""Small datasets in TU format, and the real ones where a mirror is at hand."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

TOY = {
    # two triangles with a doubled edge and a self-loop, one path of three nodes, one single node
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n1, 2\n1, 1\n4, 5\n5, 4\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "5\n7\n5\n8\n5\n5\n7\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, 6\n-6.5, 7e1\n",
}


def write_folder(folder: Path, parts: dict[str, str]) -> Path:
    """Write ``FOO_<part>.txt`` for a folder named FOO."""
    folder.mkdir(parents=True)
    for part, text in parts.items():
        (folder / f"{folder.name}_{part}.txt").write_text(text)
    return folder


def write_archive(path: Path, parts: dict[str, str]) -> Path:
    """Write ``FOO.zip`` as the official archives are laid out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in parts.items():
            archive.writestr(f"{path.stem}/{path.stem}_{part}.txt", text)
    return path


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder with ``tudataset/NAME.zip``."""
    place = os.environ.get("FEDMPI_MIRROR")
    if not place:
        pytest.skip("FEDMPI_MIRROR is not set: real datasets not at hand")
    return Path(place)


@pytest.fixture
def toy() -> dict[str, str]:
    """Three graphs; a fresh copy that a test may change."""
    return dict(TOY)


@pytest.fixture
def make_folder(tmp_path: Path):
    """Return a function that writes parts as the TU folder ``FOO``."""
    return lambda parts: write_folder(tmp_path / "own" / "FOO", parts)


@pytest.fixture
def make_archive(tmp_path: Path):
    """Return a function that writes parts as ``mirror/tudataset/<stem>.zip``."""
    return lambda stem, parts: write_archive(tmp_path / "mirror" / "tudataset" / f"{stem}.zip", parts)
