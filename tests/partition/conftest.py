"""Datasets made of labels only, and the real ones where a mirror is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tu import read_archive
from fedmpi.graphs.packed import Topology


def labelled(counts: list[int], name: str = "TOY") -> RawGraphs:
    """Return graphs of one node each, sorted by class, `counts[c]` of class ``c``."""
    total = sum(counts)
    topology = Topology(np.arange(total + 1), np.zeros(total + 1, np.int64), np.zeros(0, np.int64))
    labels = np.repeat(np.arange(len(counts)), counts)
    return RawGraphs(name, topology, None, (), None, labels, tuple(str(c) for c in range(len(counts))))


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
