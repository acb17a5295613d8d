"""A client before its first round, for tests of what algorithms do on a client."""

import pytest

from fedmpi.benchmarks.federation import prepare
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import check_suite

SUITE = """
name = "clients"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 80 } }
partition = { name = "iid", clients = 3 }
rounds = 3
batch_size = 128
model = { dropout = 0.0 }
optimizer = { name = "sgd", lr = 0.25 }
"""

NODES = """
name = "parts"
[case]
dataset = "synthetic-nodes"
partition = { name = "louvain", clients = 3, parts = "60/20/20" }
rounds = 3
share = "all"
model = { name = "gcn", hidden = 8, dropout = 0.0 }
optimizer = { name = "sgd", lr = 0.25 }
"""


def making(folder, suite):
    """Return a function that makes the rounds of a suite's one case."""

    def make(*overrides):
        (folder / "suite.toml").write_text(suite)
        (checked,) = check_suite(read(folder / "suite.toml", list(overrides)))
        return prepare(checked, DataSource(folder / "cache"), World()).rounds

    return make


@pytest.fixture
def prepared(tmp_path):
    """Return a function that makes the rounds of a case: one step of plain SGD, without dropout."""
    return making(tmp_path, SUITE)


@pytest.fixture
def prepared_parts(tmp_path):
    """Return the same of clients that hold parts of one graph, whose nodes have classes."""
    return making(tmp_path, NODES)
