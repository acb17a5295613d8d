"""Small graphs given by their edges, and the real datasets where a mirror is at hand."""

import numpy as np
import pytest

from fedmpi.datasets.raw import RawGraphs
from tests.making import packed
from tests.partition.conftest import real  # noqa: F401


@pytest.fixture(name="packed")
def packed_fixture():
    return packed


@pytest.fixture
def labelled():
    """Return a function that makes a dataset of some graphs, all of one class."""

    def made(topology, node_labels=None, name="TOY"):
        column = None if node_labels is None else np.array(node_labels, np.int64)[:, None]
        widths = () if node_labels is None else (max(node_labels) + 1,)
        labels = np.zeros(topology.num_graphs, np.int64)
        return RawGraphs(name, topology, column, widths, None, labels, ("0",))

    return made
