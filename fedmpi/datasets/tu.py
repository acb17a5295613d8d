"""Graph datasets in the text format of TU Dortmund, from an archive (in memory) or from a folder.

The format and the clean-up follow Morris et al., "TUDataset" (2020), and PyTorch Geometric's
reader: 1-based node and graph numbers, node labels minus the minimum of their column, classes
renumbered in sorted order, duplicate edges and self-loops removed, directions kept.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import bounds
from fedmpi.datasets.numbers import read_table
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import KNOWN
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Topology, pointers

_ROWS_AT_ONCE = 1 << 20
"""Edge rows looked at together; bounds memory (COLLAB has 24.6 million)."""

_MOST_LABELS = 100_000
"""One-hot width beyond which node labels are no categories."""

REQUIRED = ("A", "graph_indicator", "graph_labels")
PARTS = (*REQUIRED, "node_labels", "node_attributes")

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError),
    *(RuntimeError, ValueError, IndexError, struct.error),
)

Opener = Callable[[str], IO[bytes] | None]


@contextmanager
def _archive(path: Path, stem: str) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive and find its members ``.../STEM_<part>.txt``; damage becomes `BadInput`."""
    try:
        with zipfile.ZipFile(path) as archive:
            by_name = {info.filename.rsplit("/", 1)[-1]: info for info in archive.infolist()}
            found = {part: by_name[file] for part in PARTS if (file := f"{stem}_{part}.txt") in by_name}
            yield archive, found
    except BadInput:
        raise
    except _DAMAGE as error:
        raise BadInput(f"archive {path} is cut short or damaged: {error}; get it anew") from error


def check_archive(path: Path, stem: str) -> None:
    """Check, without unpacking, that an archive is whole and holds the files needed.

    Raises
    ------
    BadInput
        Cut short or damaged (no central directory, members past the end), a file is missing, or
        they are larger than the dataset's can be.
    """
    with _archive(path, stem) as (_, members):
        size = path.stat().st_size
        for part in REQUIRED:
            if part not in members:
                raise BadInput(f"archive {path} holds no {stem}_{part}.txt: not a TU dataset named {stem}")
        for info in members.values():
            if info.header_offset + info.compress_size > size:
                raise zipfile.BadZipFile(f"{info.filename} reaches past the end")
        most = bounds.most_text(KNOWN.get(stem))
        if sum(info.file_size for info in members.values()) > most:  # no more of a member is unpacked
            raise BadInput(bounds.too_large(f"archive {path}", most))


def check_folder(folder: Path, stem: str) -> None:
    """Check that a folder holds the files needed and that none of these is empty."""
    for part in REQUIRED:
        path = folder / f"{stem}_{part}.txt"
        if not path.is_file():
            raise BadInput(f"folder {folder} holds no {path.name}: a TU folder FOO needs FOO_{part}.txt")
        if part != "A" and path.stat().st_size == 0:
            raise BadInput(f"{path} is empty")


def read_archive(path: Path, stem: str, name: str) -> RawGraphs:
    """Read dataset `stem` from a zip archive; nothing is unpacked to disk.

    Raises
    ------
    BadInput
        The archive is damaged (checksums are verified), or its content is not consistent.
    """
    check_archive(path, stem)
    with _archive(path, stem) as (archive, members):
        return _read(
            lambda part: archive.open(members[part]) if part in members else None,
            lambda part: f"{path}: {stem}_{part}.txt",
            name,
        )


def read_folder(folder: Path, stem: str, name: str) -> RawGraphs:
    """Read dataset `stem` from a folder of text files; see `read_archive`."""
    check_folder(folder, stem)

    def opener(part: str) -> IO[bytes] | None:
        path = folder / f"{stem}_{part}.txt"
        return path.open("rb") if path.is_file() else None

    try:
        return _read(opener, lambda part: str(folder / f"{stem}_{part}.txt"), name)
    except OSError as error:
        raise BadInput(f"folder {folder} cannot be read: {error}") from error


def _read(opener: Opener, where: Callable[[str], str], name: str) -> RawGraphs:
    def table(part: str, dtype: type[np.generic]) -> npt.NDArray[np.generic] | None:
        stream = opener(part)
        if stream is None:
            return None
        with stream:
            return read_table(stream, dtype, where(part))

    graph_of, order, labels, names = _graphs(
        table("graph_indicator", np.int64), table("graph_labels", np.int64), where
    )
    num_nodes = len(graph_of)
    node_labels, widths = _node_labels(table("node_labels", np.int64), num_nodes, where("node_labels"))
    attributes = _attributes(table("node_attributes", np.float64), num_nodes, where("node_attributes"))
    topology = _topology(table("A", np.int64), graph_of, order, where("A"))
    if order is not None:
        node_labels = None if node_labels is None else node_labels[order]
        attributes = None if attributes is None else attributes[order]
    return RawGraphs(name, topology, node_labels, widths, attributes, labels, names)


def _graphs(
    indicator: npt.NDArray[np.generic] | None,
    values: npt.NDArray[np.generic] | None,
    where: Callable[[str], str],
) -> tuple[Int, Int | None, Int, tuple[str, ...]]:
    """Return graph of each node (ascending), the order that made it so or None, classes, their names."""
    assert indicator is not None and values is not None  # `check_...` saw both files
    if indicator.shape[1] != 1:
        raise BadInput(f"{where('graph_indicator')}: must have one graph number per row")
    if values.shape[1] != 1:
        raise BadInput(f"{where('graph_labels')}: must have one class per row")
    graph_of = indicator[:, 0].astype(np.int64) - 1
    num_graphs = len(values)
    if graph_of.min() < 0 or graph_of.max() >= num_graphs:
        raise BadInput(
            f"{where('graph_indicator')}: graph numbers run from {graph_of.min() + 1} "
            f"to {graph_of.max() + 1}, but graph_labels has {num_graphs} rows"
        )
    empty = np.flatnonzero(np.bincount(graph_of, minlength=num_graphs) == 0)
    if len(empty):
        raise BadInput(f"{where('graph_indicator')}: graph {empty[0] + 1} has no nodes")
    order = None
    if np.any(np.diff(graph_of) < 0):
        order = np.argsort(graph_of, kind="stable")
        graph_of = graph_of[order]
    classes, labels = np.unique(values[:, 0].astype(np.int64), return_inverse=True)
    return graph_of, order, labels.astype(np.int64), tuple(str(value) for value in classes)


def _node_labels(
    table: npt.NDArray[np.generic] | None, num_nodes: int, where: str
) -> tuple[Int | None, tuple[int, ...]]:
    if table is None or table.size == 0:
        return None, ()
    _same_length(table, num_nodes, where)
    labels = table.astype(np.int64)
    widths = tuple(
        int(high) - int(low) + 1 for low, high in zip(labels.min(axis=0), labels.max(axis=0), strict=True)
    )
    if max(widths) > _MOST_LABELS:
        raise BadInput(f"{where}: labels span {max(widths)} values, more than {_MOST_LABELS}: renumber them")
    labels -= labels.min(axis=0)
    return labels, widths


def _attributes(
    table: npt.NDArray[np.generic] | None, num_nodes: int, where: str
) -> npt.NDArray[np.float32] | None:
    if table is None or table.size == 0:
        return None
    _same_length(table, num_nodes, where)
    attributes = table.astype(np.float32)
    if not np.isfinite(attributes).all():
        row = int(np.flatnonzero(~np.isfinite(attributes).all(axis=1))[0])
        raise BadInput(f"{where}: row {row + 1} is not finite in 32 bits")
    return attributes


def _same_length(table: npt.NDArray[np.generic], num_nodes: int, where: str) -> None:
    if len(table) != num_nodes:
        raise BadInput(f"{where}: has {len(table)} rows, but graph_indicator has {num_nodes} nodes")


def _topology(
    table: npt.NDArray[np.generic] | None, graph_of: Int, order: Int | None, where: str
) -> Topology:
    """Return the CSR structure of the edge rows, with duplicates and self-loops removed."""
    assert table is not None  # `check_...` saw the file
    num_nodes = len(graph_of)
    edges = table.astype(np.int64, copy=False) if table.size else np.zeros((0, 2), np.int64)
    if edges.shape[1] != 2:
        raise BadInput(f"{where}: must have two node numbers per row")
    if len(edges) and (edges.min() < 1 or edges.max() > num_nodes):
        raise BadInput(
            f"{where}: node numbers run from {edges.min()} to {edges.max()}, "
            f"but graph_indicator has {num_nodes} nodes"
        )
    place = np.arange(num_nodes) if order is None else np.argsort(order)
    keys = np.empty(len(edges), np.int64)
    for first in range(0, len(edges), _ROWS_AT_ONCE):
        source, target = place[edges[first : first + _ROWS_AT_ONCE] - 1].T
        apart = np.flatnonzero(graph_of[source] != graph_of[target])
        if len(apart):
            row = first + int(apart[0])
            raise BadInput(
                f"{where}: row {row + 1} links nodes {edges[row, 0]} and {edges[row, 1]} of two graphs"
            )
        keys[first : first + _ROWS_AT_ONCE] = np.where(source == target, -1, target * num_nodes + source)
    del table, edges
    keys.sort()
    keys = keys[np.searchsorted(keys, 0) :]  # without self-loops, which were marked -1
    if len(keys):
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    rows, columns = np.divmod(keys, num_nodes)
    row_ptr = pointers(np.bincount(rows, minlength=num_nodes))
    return Topology(pointers(np.bincount(graph_of)), row_ptr, columns)
