"""Small graphs given by their edges, and the real datasets where a mirror is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tu import read_archive
from fedmpi.graphs.packed import Topology, pointers


def packed(*graphs: tuple[int, list[tuple[int, int]]]) -> Topology:
    """Return undirected graphs, each given as (number of nodes, edges)."""
    sizes = [size for size, _ in graphs]
    graph_ptr = pointers(sizes)
    both = [
        (start + a, start + b)
        for start, (_, edges) in zip(graph_ptr, graphs, strict=False)
        for one, other in edges
        for a, b in ((one, other), (other, one))
    ]
    rows, columns = np.array(sorted(both), np.int64).reshape(-1, 2).T
    return Topology(graph_ptr, pointers(np.bincount(rows, minlength=sum(sizes))), columns)


def labelled(topology: Topology, node_labels: list[int] | None = None, name: str = "TOY") -> RawGraphs:
    """Return a dataset of these graphs, all of one class."""
    column = None if node_labels is None else np.array(node_labels, np.int64)[:, None]
    widths = () if node_labels is None else (max(node_labels) + 1,)
    return RawGraphs(name, topology, column, widths, None, np.zeros(topology.num_graphs, np.int64), ("0",))


@pytest.fixture(name="packed")
def packed_fixture():
    return packed


@pytest.fixture(name="labelled")
def labelled_fixture():
    return labelled


@pytest.fixture(scope="session")
def real():
    """Return a function that reads a TU dataset from the mirror."""
    place = os.environ.get("FEDMPI_MIRROR")
    if not place:
        pytest.skip("FEDMPI_MIRROR is not set: real datasets not at hand")
    return lambda name: read_archive(Path(place) / "tudataset" / f"{name}.zip", name, name)
