"""Graph datasets in the text format of TU Dortmund, from an archive (in memory) or from a folder.

The format and the clean-up follow Morris et al., "TUDataset" (2020), and PyTorch Geometric's
reader: 1-based node and graph numbers, node labels minus the minimum of their column, classes
renumbered in sorted order, duplicate edges and self-loops removed, directions kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import bounds
from fedmpi.datasets import labels as own_labels
from fedmpi.datasets.archives import opened
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.networks import csr_of
from fedmpi.datasets.numbers import read_table
from fedmpi.datasets.own import clients_of, parts_of
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
OWN_PARTS = ("graph_split", "client")
"""Of own folders: part and client of each graph."""

_MOST_ROWS_BYTES = 1 << 28
"""Of a file with a row of text for each graph."""


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


def folder_labels(folder: Path, stem: str, task: str = "") -> Labels:
    """Return the labels of a folder's graphs, one or several in a row; see `fedmpi.datasets.labels.of_cells`.

    Raises
    ------
    BadInput
        The folder is not complete, rows have several lengths, or labels are not those of the task.
    """
    check_folder(folder, stem)
    path = folder / f"{stem}_graph_labels.txt"
    lines = _lines(path)
    width = next((line.count(",") + 1 for line in lines if line), 1)
    rows = [line.split(",") if line else [""] * width for line in lines]
    if any(len(row) != width for row in rows):
        raise BadInput(f"{path}: its rows do not all have {width} label{'s' * (width > 1)}")
    columns = ["label"] if width == 1 else [f"label{column + 1}" for column in range(width)]
    return own_labels.of_cells(rows, columns, task, str(folder))


def folder_clients(folder: Path, stem: str, labels: Labels) -> dict[str, Any]:
    """Return fields of `RawGraphs` that a folder states of its labelled graphs: clients and parts.

    Raises
    ------
    BadInput
        A file has no row for each graph, a graph has no client, or a part is not known.
    """
    found: dict[str, Any] = {}
    if (path := folder / f"{stem}_client.txt").is_file():
        clients, found["client_names"] = clients_of(_per_graph(path, labels), str(path))
        found["clients"] = clients[labels.present]
    if (path := folder / f"{stem}_graph_split.txt").is_file():
        found["parts"] = parts_of(_per_graph(path, labels), str(path))[labels.present]
    return found


def _lines(path: Path, num_graphs: int = 0) -> list[str]:
    """Return the lines of a text, without empty ones at its end where there are more than graphs."""
    with bounds.read_text(path, _MOST_ROWS_BYTES) as text:
        lines = [line.strip() for line in text.read().removesuffix("\n").split("\n")]
    while len(lines) > num_graphs and not lines[-1]:
        lines.pop()
    return lines


def read_folder(folder: Path, stem: str, name: str, task: str = "") -> RawGraphs:
    """Read dataset `stem` from a folder of text files; see `read_archive` and `folder_labels`.

    A graph without a label is left out.
    """
    labels = folder_labels(folder, stem, task)
    paths = [folder / file for file in _files(stem, PARTS)]
    streams = {path.name: partial(FileIO, path) for path in paths if path.is_file()}
    with bounds.undamaged(folder):
        raw = _read(streams, stem, f"{folder}/", name, labels)
    return replace(raw, **folder_clients(folder, stem, labels))


def _per_graph(path: Path, labels: Labels) -> list[str]:
    """Return a line for each graph."""
    num_graphs = len(labels.values)
    lines = _lines(path, num_graphs)
    if len(lines) != num_graphs:
        raise BadInput(f"{path}: has {len(lines)} rows, but graph_labels has {num_graphs}")
    return lines


def _read(
    streams: Mapping[str, Callable[[], IO[bytes]]],
    stem: str,
    place: str,
    name: str,
    labels: Labels | None = None,
) -> RawGraphs:
    """Read a dataset; without `labels` these are whole numbers, one for each graph, and classes."""

    def where(part: str) -> str:
        return f"{place}{stem}_{part}.txt"

    def table(part: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
        file = f"{stem}_{part}.txt"
        if file not in streams:
            return np.zeros((0, 0), dtype)
        with streams[file]() as stream:
            return read_table(stream, dtype, where(part))

    labels = labels or _classes(table("graph_labels", np.int64), where("graph_labels"))
    graph_of, order = _graphs(
        table("graph_indicator", np.int64), len(labels.values), where("graph_indicator")
    )
    num_nodes = len(graph_of)
    node_labels, widths = _node_labels(table("node_labels", np.int64), num_nodes, where("node_labels"))
    attributes = _attributes(table("node_attributes", np.float64), num_nodes, where("node_attributes"))
    topology = _topology(table("A", np.int64), graph_of, order, where("A"))
    kept = np.flatnonzero(labels.present)
    refused = tuple(f"graph {number + 1}: no label" for number in np.flatnonzero(~labels.present))
    if refused:
        nodes = labels.present[graph_of]
        topology, order = _taken(topology, labels.present, nodes), order[nodes]
    node_labels = None if node_labels is None else node_labels[order]
    attributes = None if attributes is None else attributes[order]
    return RawGraphs(
        name,
        topology,
        node_labels,
        widths,
        attributes,
        labels.taken(kept),
        labels.names,
        labels.kind,
        refused=refused,
    )


def _classes(values: Int, where: str) -> Labels:
    """Return the classes of all graphs."""
    if values.shape[1] != 1:
        raise BadInput(f"{where}: must have one class per row")
    classes, labels = np.unique(values[:, 0], return_inverse=True)
    names = tuple(str(value) for value in classes)
    return Labels("classification", labels.reshape(-1, 1).astype(np.float64), names)


def _taken(topology: Topology, graphs: npt.NDArray[np.bool_], nodes: npt.NDArray[np.bool_]) -> Topology:
    """Return some of the graphs; `nodes` says which nodes are theirs."""
    degrees = np.diff(topology.row_ptr)
    columns = (np.cumsum(nodes) - 1)[topology.columns[np.repeat(nodes, degrees)]]
    sizes = np.diff(topology.graph_ptr)[graphs]
    return Topology(pointers(sizes), pointers(degrees[nodes]), columns)


def _graphs(indicator: Int, num_graphs: int, where: str) -> tuple[Int, Int]:
    """Return the graph of each node (ascending), and the order that made it so."""
    if indicator.shape[1] != 1:
        raise BadInput(f"{where}: must have one graph number per row")
    graph_of = indicator[:, 0] - 1
    if graph_of.min() < 0 or graph_of.max() >= num_graphs:
        raise BadInput(
            f"{where}: graph numbers run from {graph_of.min() + 1} "
            f"to {graph_of.max() + 1}, but graph_labels has {num_graphs} rows"
        )
    empty = np.flatnonzero(np.bincount(graph_of, minlength=num_graphs) == 0)
    if len(empty):
        raise BadInput(f"{where}: graph {empty[0] + 1} has no nodes")
    order = np.argsort(graph_of, kind="stable")
    return graph_of[order], order


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
