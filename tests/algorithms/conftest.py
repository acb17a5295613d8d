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


@pytest.fixture
def prepared(tmp_path):
    """Return a function that makes the rounds of a case: one step of plain SGD, without dropout."""

    def make(*overrides):
        (tmp_path / "suite.toml").write_text(SUITE)
        (checked,) = check_suite(read(tmp_path / "suite.toml", list(overrides)))
        return prepare(checked, DataSource(tmp_path / "cache"), World()).rounds

    return make
