"""Datasets made of labels only, and the real ones where a mirror is at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from fedmpi.datasets.tu import read_archive
from tests.making import labelled as of_classes
from tests.making import without_edges


@pytest.fixture
def labelled():
    """Return a function that makes graphs of one node each, sorted by class, `counts[c]` of class ``c``."""

    def made(counts, name="TOY"):
        classes = range(len(counts))
        topology = without_edges(*[1] * sum(counts))
        return of_classes(topology, np.repeat(classes, counts), map(str, classes), name)

    return made


@pytest.fixture(scope="session")
def real(real_data):
    """Return a function that reads a TU dataset from the mirror."""
    mirror = Path(os.environ["FEDMPI_MIRROR"])
    return lambda name: read_archive(mirror / "tudataset" / f"{name}.zip", name, name)
