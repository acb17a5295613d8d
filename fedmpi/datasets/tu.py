"""Graph datasets in the text format of TU Dortmund, from an archive (in memory) or from a folder.

The format and the clean-up follow Morris et al., "TUDataset" (2020), and PyTorch Geometric's
reader: 1-based node and graph numbers, node labels minus the minimum of their column, classes
renumbered in sorted order, duplicate edges and self-loops removed, directions kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import bounds
from fedmpi.datasets.archives import opened
from fedmpi.datasets.networks import csr_of
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
OPTIONAL = ("node_labels", "node_attributes")
PARTS = (*REQUIRED, *OPTIONAL)


def _files(stem: str, parts: Sequence[str]) -> list[str]:
    return [f"{stem}_{part}.txt" for part in parts]


def _opened(path: Path, stem: str) -> AbstractContextManager[tuple[ZipFile, dict[str, ZipInfo]]]:
    most = bounds.most_text(KNOWN.get(stem))
    return opened(path, _files(stem, REQUIRED), _files(stem, OPTIONAL), most)


def check_archive(path: Path, stem: str) -> None:
    """Check, without unpacking, that an archive holds the files needed; see `archives.opened`."""
    with _opened(path, stem):
        pass


def check_folder(folder: Path, stem: str) -> None:
    """Check that a folder holds the files needed and that none of these is empty."""
    for part, file in zip(REQUIRED, _files(stem, REQUIRED), strict=True):
        path = folder / file
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
    with _opened(path, stem) as (archive, members):
        streams = {file: partial(archive.open, info) for file, info in members.items()}
        return _read(streams, stem, f"{path}: ", name)


def read_folder(folder: Path, stem: str, name: str) -> RawGraphs:
    """Read dataset `stem` from a folder of text files; see `read_archive`."""
    check_folder(folder, stem)
    paths = [folder / file for file in _files(stem, PARTS)]
    streams = {path.name: partial(FileIO, path) for path in paths if path.is_file()}
    with bounds.undamaged(folder):
        return _read(streams, stem, f"{folder}/", name)


def _read(streams: Mapping[str, Callable[[], IO[bytes]]], stem: str, place: str, name: str) -> RawGraphs:
    def where(part: str) -> str:
        return f"{place}{stem}_{part}.txt"

    def table(part: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
        file = f"{stem}_{part}.txt"
        if file not in streams:
            return np.zeros((0, 0), dtype)
        with streams[file]() as stream:
            return read_table(stream, dtype, where(part))

    graph_of, order, labels, names = _graphs(
        table("graph_indicator", np.int64), table("graph_labels", np.int64), where
    )
    num_nodes = len(graph_of)
    node_labels, widths = _node_labels(table("node_labels", np.int64), num_nodes, where("node_labels"))
    attributes = _attributes(table("node_attributes", np.float64), num_nodes, where("node_attributes"))
    topology = _topology(table("A", np.int64), graph_of, order, where("A"))
    node_labels = None if node_labels is None else node_labels[order]
    attributes = None if attributes is None else attributes[order]
    return RawGraphs(name, topology, node_labels, widths, attributes, labels, names)


def _graphs(
    indicator: Int, values: Int, where: Callable[[str], str]
) -> tuple[Int, Int, Int, tuple[str, ...]]:
    """Return graph of each node (ascending), the order that made it so, classes, their names."""
    if indicator.shape[1] != 1:
        raise BadInput(f"{where('graph_indicator')}: must have one graph number per row")
    if values.shape[1] != 1:
        raise BadInput(f"{where('graph_labels')}: must have one class per row")
    graph_of, num_graphs = indicator[:, 0] - 1, len(values)
    if graph_of.min() < 0 or graph_of.max() >= num_graphs:
        raise BadInput(
            f"{where('graph_indicator')}: graph numbers run from {graph_of.min() + 1} "
            f"to {graph_of.max() + 1}, but graph_labels has {num_graphs} rows"
        )
    empty = np.flatnonzero(np.bincount(graph_of, minlength=num_graphs) == 0)
    if len(empty):
        raise BadInput(f"{where('graph_indicator')}: graph {empty[0] + 1} has no nodes")
    order = np.argsort(graph_of, kind="stable")
    classes, labels = np.unique(values[:, 0], return_inverse=True)
    return graph_of[order], order, labels.astype(np.int64), tuple(str(value) for value in classes)


def _node_labels(table: Int, num_nodes: int, where: str) -> tuple[Int | None, tuple[int, ...]]:
    if table.size == 0:
        return None, ()
    _same_length(table, num_nodes, where)
    ends = zip(table.min(axis=0).tolist(), table.max(axis=0).tolist(), strict=True)
    widths = tuple(high - low + 1 for low, high in ends)
    if max(widths) > _MOST_LABELS:
        raise BadInput(f"{where}: labels span {max(widths)} values, more than {_MOST_LABELS}: renumber them")
    return table - table.min(axis=0), widths


def _attributes(table: npt.NDArray[np.float64], num_nodes: int, where: str) -> npt.NDArray[np.float32] | None:
    if table.size == 0:
        return None
    _same_length(table, num_nodes, where)
    attributes = table.astype(np.float32)
    if not np.isfinite(attributes).all():
        row = int(np.flatnonzero(~np.isfinite(attributes).all(axis=1))[0])
        raise BadInput(f"{where}: row {row + 1} is not finite in 32 bits")
    return attributes


def _same_length(table: npt.NDArray[Any], num_nodes: int, where: str) -> None:
    if len(table) != num_nodes:
        raise BadInput(f"{where}: has {len(table)} rows, but graph_indicator has {num_nodes} nodes")


def _topology(table: Int, graph_of: Int, order: Int, where: str) -> Topology:
    """Return the CSR structure of the edge rows, with duplicates and self-loops removed."""
    num_nodes = len(graph_of)
    edges = table if table.size else np.zeros((0, 2), np.int64)
    if edges.shape[1] != 2:
        raise BadInput(f"{where}: must have two node numbers per row")
    if len(edges) and (edges.min() < 1 or edges.max() > num_nodes):
        raise BadInput(
            f"{where}: node numbers run from {edges.min()} to {edges.max()}, "
            f"but graph_indicator has {num_nodes} nodes"
        )
    place = np.argsort(order)
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
    return Topology(pointers(np.bincount(graph_of)), *csr_of(keys, num_nodes, num_nodes))
