"""Folders in the raw format of the Open Graph Benchmark: ``raw/edge.csv.gz`` and so on, ``split/NAME``.

The format is that of Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs" (NeurIPS
2020): tables without headers, nodes numbered from 0 in each graph, counts of nodes and edges of each graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import bounds
from fedmpi.datasets import labels as own_labels
from fedmpi.datasets.labelled import labelled
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.networks import attributed
from fedmpi.datasets.numbers import finite, read_table, refuse_other_length
from fedmpi.datasets.own import said_of
from fedmpi.datasets.raw import ExampleKind, Int, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import pointers

INVERSE = "add_inverse_edge"
"""What may be said of a folder, as OGB's own list of datasets does: whether each edge has an opposite."""

_MOST_NODES = 1 << 26
"""Of all graphs together; ogbg-ppa has 38 million."""

_PARTS = ("train", "valid", "test")
"""Files of a split, in the order of `RawGraphs.parts`."""


@dataclass(frozen=True)
class Folder:
    """A folder, and what stands behind its path.

    Attributes
    ----------
    path : Path
    examples : "graph" or "node"
        What has labels.
    task, split : str
        A key of `fedmpi.datasets.labels.KINDS`, and a folder in ``split``; empty where nothing is said.
    inverse : bool
        Whether the opposite of each edge is added.
    """

    path: Path
    examples: ExampleKind
    task: str = ""
    split: str = ""
    inverse: bool = False

    def file(self, name: str) -> Path:
        """Return the path of a file of ``raw``."""
        return self.path / "raw" / f"{name}.csv.gz"

    def files(self) -> Iterator[Path]:
        """Yield the files that are read, where they are there."""
        for name in ("edge", "num-node-list", "num-edge-list", "node-feat", "edge-feat"):
            yield self.file(name)
        yield self.file(f"{self.examples}-label")
        yield from sorted((self.path / "split").glob("*/*.csv.gz"))


def holds(path: Path) -> ExampleKind | None:
    """Return what has labels in a folder of this format; None where it has another."""
    raw = path / "raw"
    if not raw.is_dir() or not any(raw.glob("*.csv.gz")):
        return None
    return "node" if (raw / "node-label.csv.gz").is_file() else "graph"


def folder_of(path: Path, name: str, examples: ExampleKind) -> Folder:
    """Return a folder with what the name of the dataset says, as in ``./ogbg_mine?add_inverse_edge=True``.

    Raises
    ------
    BadInput
        See `fedmpi.datasets.own.said_of`.
    """
    said = dict(said_of(name, ("task", "split", INVERSE)))
    inverse = said.get(INVERSE, "False")
    if inverse not in ("True", "False"):
        raise BadInput(f"{path}: {INVERSE} is True or False, not '{inverse}'")
    return Folder(path, examples, said.get("task", ""), said.get("split", ""), inverse == "True")


def labels_in(folder: Folder) -> Labels:
    """Return the labels of graphs or nodes.

    Raises
    ------
    BadInput
        A file is missing or damaged, or labels are not those of the task; of nodes numbers.
    """
    counts = _counts(folder, "num-node-list")
    num_examples = len(counts) if folder.examples == "graph" else int(counts.sum())
    path = folder.file(f"{folder.examples}-label")
    lines = bounds.read_lines(_there(path), bounds.MOST_TEXT_BYTES, num_examples)
    if len(lines) != num_examples:
        raise BadInput(f"{path}: has {len(lines)} rows, but there are {num_examples} {folder.examples}s")
    labels = own_labels.of_lines(lines, folder.task, path, str(folder.path))
    if folder.examples == "node" and labels.kind == "regression":
        raise BadInput(f"{path}: of nodes only classes, or labels of 0 and 1, are predicted, not numbers")
    return labels


def read(folder: Folder, name: str) -> RawGraphs:
    """Read a folder; a graph or node without a label is no example.

    Edges keep the directions of the file; self-loops are removed, and so are duplicates, whose features are
    added up.

    Raises
    ------
    BadInput
        As `labels_in`; or the files are not consistent.
    """
    labels, parts = labels_in(folder), None
    sizes, edge_counts = _counts(folder, "num-node-list"), _counts(folder, "num-edge-list")
    where = str(folder.file("num-edge-list"))
    refuse_other_length(edge_counts, len(sizes), where, "num-node-list has {}")
    graph_ptr = pointers(sizes)
    features = _table(folder, "node-feat", np.float64)
    nodes = finite(features, int(graph_ptr[-1]), str(folder.file("node-feat")), "there are {} nodes")
    ends = _ends(folder, sizes, edge_counts)
    edges = finite(
        _table(folder, "edge-feat", np.float64),
        len(ends),
        str(folder.file("edge-feat")),
        "there are {} edges",
    )
    senders, receivers = (ends + np.repeat(graph_ptr[:-1], edge_counts)[:, None]).T
    if folder.inverse:
        senders, receivers = np.concatenate([senders, receivers]), np.concatenate([receivers, senders])
        edges = None if edges is None else np.concatenate([edges, edges])
    topology, edges = attributed(senders, receivers, graph_ptr, edges)
    if edges is not None and not np.isfinite(edges).all():
        raise BadInput(f"{folder.file('edge-feat')}: features of duplicate edges, added up, are not finite")
    parts = _parts(folder, len(labels.values))
    kept = np.flatnonzero(labels.present)
    parts = None if parts is None else parts[kept]
    if folder.examples == "graph":
        raw = labelled(name, topology, labels, node_attributes=nodes, edge_attributes=edges)
        return replace(raw, parts=parts)
    return RawGraphs(
        name, topology, None, (), nodes, labels.taken(kept), labels.names, labels.kind,
        edge_attributes=edges, places=kept, parts=parts,
    )  # fmt: skip


def _there(path: Path) -> Path:
    """Return a file that must be there."""
    if not path.is_file():
        raise BadInput(f"no file {path}: a folder with raw/ needs it")
    return path


def _table(folder: Folder, name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return the rows of a file of numbers, none where it is not there."""
    path = folder.file(name)
    if not path.is_file():
        return np.zeros((0, 0), dtype)
    with bounds.read_bytes(path, bounds.MOST_TEXT_BYTES) as stream:
        return read_table(stream, dtype, str(path))


def _counts(folder: Folder, name: str) -> Int:
    """Return a number for each graph."""
    path = _there(folder.file(name))
    table = _table(folder, name, np.int64)
    least = int(name == "num-node-list")
    if not table.size or table.shape[1] != 1 or table.min() < least or table.max() > _MOST_NODES:
        raise BadInput(
            f"{path}: must have one number of {name[4:8]}s for each graph, {least} to {_MOST_NODES:,}"
        )
    if table.sum() > _MOST_NODES and least:
        raise BadInput(f"{path}: has more than {_MOST_NODES:,} nodes")
    return np.asarray(table[:, 0])


def _ends(folder: Folder, sizes: Int, edge_counts: Int) -> Int:
    """Return the two nodes of each edge, numbered in its graph."""
    path = _there(folder.file("edge"))
    table = _table(folder, "edge", np.int64)
    ends = table if table.size else np.zeros((0, 2), np.int64)
    if ends.shape[1] != 2:
        raise BadInput(f"{path}: must have two node numbers per row")
    refuse_other_length(ends, int(edge_counts.sum()), str(path), "num-edge-list has {} in all")
    outside = (ends < 0) | (ends >= np.repeat(sizes, edge_counts)[:, None])
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise BadInput(f"{path}: row {row + 1} names a node that its graph has not: {ends[row].tolist()}")
    return ends


def _parts(folder: Folder, num_examples: int) -> npt.NDArray[np.int8] | None:
    """Return the part of each example, as a folder in ``split`` says."""
    names = sorted(path.name for path in (folder.path / "split").glob("*") if path.is_dir())
    if not names and not folder.split:
        return None
    if folder.split not in ("", *names) or (len(names) > 1 and not folder.split):
        one = names[0] if names else "NAME"
        there = ", ".join(names) or "none"
        raise BadInput(f"{folder.path}: choose a split, as in ?split={one} (there are: {there})")
    place = folder.path / "split" / (folder.split or names[0])
    parts = np.full(num_examples, -1, np.int8)
    for part, name in enumerate(_PARTS):
        path = _there(place / f"{name}.csv.gz")
        with bounds.read_bytes(path, bounds.MOST_TEXT_BYTES) as stream:
            chosen = read_table(stream, np.int64, str(path)).reshape(-1)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < num_examples:
            raise BadInput(
                f"{path}: has {chosen.min()} to {chosen.max()}, but examples are 0 to {num_examples - 1}"
            )
        if np.any(parts[chosen] >= 0):
            raise BadInput(f"{path}: an example is in two parts")
        parts[chosen] = part
    return parts
