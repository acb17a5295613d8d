"""Small graphs given by their edges, and the real datasets where a mirror is at hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology
from tests.graphs.making import packed
from tests.partition.conftest import real  # noqa: F401


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
