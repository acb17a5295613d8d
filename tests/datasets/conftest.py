"""Small datasets in TU format, and the real ones where a mirror is at hand."""

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


@pytest.fixture(scope="session")
def mirror(real_data):
    """Folder with ``tudataset/NAME.zip``."""
    return Path(os.environ["FEDMPI_MIRROR"])


@pytest.fixture
def toy():
    """Three graphs; a fresh copy that a test may change."""
    return dict(TOY)


@pytest.fixture
def make_folder(tmp_path):
    """Return a function that writes parts as the TU folder ``FOO``: each in ``FOO_<part>.txt``."""

    def write(parts):
        folder = tmp_path / "own" / "FOO"
        folder.mkdir(parents=True)
        for part, text in parts.items():
            (folder / f"FOO_{part}.txt").write_text(text)
        return folder

    return write


@pytest.fixture
def make_archive(tmp_path):
    """Return a function that writes parts as ``mirror/tudataset/<stem>.zip``, laid out as the official ones."""

    def write(stem, parts):
        path = tmp_path / "mirror" / "tudataset" / f"{stem}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, text in parts.items():
                archive.writestr(f"{stem}/{stem}_{part}.txt", text)
        return path

    return write
