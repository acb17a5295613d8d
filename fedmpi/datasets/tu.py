"""Graph datasets in the text format of TU Dortmund, from an archive (in memory) or from a folder.

The format and the clean-up follow Morris et al., "TUDataset" (2020), and PyTorch Geometric's
reader: 1-based node and graph numbers, labels of nodes and edges minus the minimum of their column,
classes renumbered in sorted order, duplicate edges and self-loops removed, directions kept. An edge has
its attributes, then its labels one-hot; those of duplicates are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import bounds
from fedmpi.datasets.archives import opened
from fedmpi.datasets.labelled import labelled
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.networks import csr_of, distinct
from fedmpi.datasets.numbers import finite, read_table, refuse_other_length
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import KNOWN
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Float, Topology, pointers

_ROWS_AT_ONCE = 1 << 20
"""Edge rows looked at together; bounds memory (COLLAB has 24.6 million)."""

_MOST_LABELS = 100_000
"""One-hot width beyond which labels are no categories."""

_MOST_ONE_HOT_BYTES = 1 << 31
"""Of the labels of edges, a float32 in each column."""

_NODES = "graph_indicator has {} nodes"
"""What another file has, of which each has a row."""

REQUIRED = ("A", "graph_indicator", "graph_labels")
OPTIONAL = ("node_labels", "node_attributes")


def files(stem: str, parts: Sequence[str]) -> list[str]:
    """Return the names of the files of some parts."""
    return [f"{stem}_{part}.txt" for part in parts]


def _opened(path: Path, stem: str) -> AbstractContextManager[tuple[ZipFile, dict[str, ZipInfo]]]:
    most = bounds.most_text(KNOWN.get(stem))
    return opened(path, files(stem, REQUIRED), files(stem, OPTIONAL), most)


def check_archive(path: Path, stem: str) -> None:
    """Check, without unpacking, that an archive holds the files needed; see `archives.opened`."""
    with _opened(path, stem):
        pass


def read_archive(path: Path, stem: str, name: str) -> RawGraphs:
    """Read dataset `stem` from a zip archive; nothing is unpacked to disk.

    Raises
    ------
    BadInput
        The archive is damaged (checksums are verified), or its content is not consistent.
    """
    with _opened(path, stem) as (archive, members):
        streams = {file: partial(archive.open, info) for file, info in members.items()}
        return read(streams, stem, f"{path}: ", name)


def read(
    streams: Mapping[str, Callable[[], IO[bytes]]],
    stem: str,
    place: str,
    name: str,
    labels: Labels | None = None,
) -> RawGraphs:
    """Read a dataset from its open files.

    Parameters
    ----------
    streams : mapping
        From the name of a file to what opens it.
    stem, place, name : str
        Of the files, of what they are in, for messages, and of the dataset.
    labels : Labels, optional
        Of the graphs; by default they are whole numbers, one for each, and classes.
    """

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
    node_labels, widths = _labels(table("node_labels", np.int64), num_nodes, where("node_labels"))
    attributes = finite(table("node_attributes", np.float64), num_nodes, where("node_attributes"), _NODES)
    of_edges = _edge_features(table("edge_attributes", np.float64), table("edge_labels", np.int64), where)
    topology, of_edges = _topology(table("A", np.int64), graph_of, order, where("A"), of_edges)
    return labelled(
        name,
        topology,
        labels,
        None if node_labels is None else node_labels[order],
        widths,
        None if attributes is None else attributes[order],
        of_edges,
    )


def _classes(values: Int, where: str) -> Labels:
    """Return the classes of all graphs."""
    if values.shape[1] != 1:
        raise BadInput(f"{where}: must have one class per row")
    classes, labels = np.unique(values[:, 0], return_inverse=True)
    names = tuple(str(value) for value in classes)
    return Labels("classification", labels.reshape(-1, 1).astype(np.float64), names)


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


def _labels(table: Int, num_rows: int, where: str, other: str = _NODES) -> tuple[Int | None, tuple[int, ...]]:
    """Return labels minus the minimum of their column, and the one-hot width of each column."""
    if table.size == 0:
        return None, ()
    refuse_other_length(table, num_rows, where, other)
    ends = zip(table.min(axis=0).tolist(), table.max(axis=0).tolist(), strict=True)
    widths = tuple(high - low + 1 for low, high in ends)
    if max(widths) > _MOST_LABELS:
        raise BadInput(f"{where}: labels span {max(widths)} values, more than {_MOST_LABELS}: renumber them")
    return table - table.min(axis=0), widths


def _edge_features(
    attributes: npt.NDArray[np.float64], labels: Int, where: Callable[[str], str]
) -> Float | None:
    """Return the attributes of the edge rows, then one-hot columns of every column of their labels."""
    num_edges = len(attributes) or len(labels)
    found = finite(attributes, num_edges, where("edge_attributes"), "{} edges")
    places, widths = _labels(labels, num_edges, where("edge_labels"), "edge_attributes has {} rows")
    if places is None:
        return found
    if 4 * num_edges * sum(widths) > _MOST_ONE_HOT_BYTES:
        raise BadInput(
            f"{where('edge_labels')}: {sum(widths)} different labels are too many for so many edges"
        )
    one_hot = np.zeros((num_edges, sum(widths)), np.float32)
    one_hot[np.arange(num_edges)[:, None], places + pointers(widths)[:-1]] = 1
    return one_hot if found is None else np.concatenate([found, one_hot], axis=1)


def _topology(
    table: Int, graph_of: Int, order: Int, where: str, attributes: Float | None
) -> tuple[Topology, Float | None]:
    """Return the CSR structure of the edge rows, without duplicates and self-loops, and their attributes."""
    num_nodes = len(graph_of)
    edges = table if table.size else np.zeros((0, 2), np.int64)
    if edges.shape[1] != 2:
        raise BadInput(f"{where}: must have two node numbers per row")
    if attributes is not None and len(attributes) != len(edges):
        raise BadInput(
            f"{where}: has {len(edges)} rows, but there are {len(attributes)} of attributes or labels"
        )
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
    keys, attributes = distinct(keys, attributes)
    if attributes is not None and not np.isfinite(attributes).all():
        raise BadInput(f"{where}: attributes of duplicate edges, added up, are not finite in 32 bits")
    return Topology(pointers(np.bincount(graph_of)), *csr_of(keys, num_nodes, num_nodes)), attributes
