"""Own folders in TU format: labels, clients and parts of the graphs as tables have them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from fedmpi.datasets import bounds, tu
from fedmpi.datasets import labels as own_labels
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.own import clients_of, parts_of
from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput

EDGES = ("edge_labels", "edge_attributes")
"""Of own folders alone: known datasets are without these."""

PARTS = (*tu.REQUIRED, *tu.OPTIONAL, *EDGES, "graph_split", "client")
"""All that is read of an own folder."""

_MOST_ROWS_BYTES = 1 << 28
"""Of a file with a row of text for each graph."""


def check_folder(folder: Path, stem: str) -> None:
    """Check that a folder holds the files needed and that none of these is empty."""
    for part, file in zip(tu.REQUIRED, tu.files(stem, tu.REQUIRED), strict=True):
        path = folder / file
        if not path.is_file():
            raise BadInput(f"folder {folder} holds no {path.name}: a TU folder FOO needs FOO_{part}.txt")
        if part != "A" and path.stat().st_size == 0:
            raise BadInput(f"{path} is empty")


def folder_labels(folder: Path, stem: str, task: str = "") -> Labels:
    """Return the labels of a folder's graphs, one or several in a row; see `fedmpi.datasets.labels`.

    Raises
    ------
    BadInput
        The folder is not complete, rows have several lengths, or labels are not those of the task.
    """
    check_folder(folder, stem)
    path = folder / f"{stem}_graph_labels.txt"
    return own_labels.of_lines(bounds.read_lines(path, _MOST_ROWS_BYTES), task, path, str(folder))


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


def read_folder(folder: Path, stem: str, name: str, task: str = "") -> RawGraphs:
    """Read dataset `stem` from a folder of text files; see `fedmpi.datasets.tu.read` and `folder_labels`.

    A graph without a label is left out.
    """
    labels = folder_labels(folder, stem, task)
    paths = [folder / file for file in tu.files(stem, (*tu.REQUIRED, *tu.OPTIONAL, *EDGES))]
    streams = {path.name: partial(FileIO, path) for path in paths if path.is_file()}
    with bounds.undamaged(folder):
        raw = tu.read(streams, stem, f"{folder}/", name, labels)
    return replace(raw, **folder_clients(folder, stem, labels))


def _per_graph(path: Path, labels: Labels) -> list[str]:
    """Return a line for each graph."""
    num_graphs = len(labels.values)
    lines = bounds.read_lines(path, _MOST_ROWS_BYTES, num_graphs)
    if len(lines) != num_graphs:
        raise BadInput(f"{path}: has {len(lines)} rows, but graph_labels has {num_graphs}")
    return lines
