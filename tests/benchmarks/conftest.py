import pytest

from fedmpi.benchmarks.cases import choose
from fedmpi.comm.start import load_world
from fedmpi.datasets.source import DataSource


@pytest.fixture(scope="session")
def world():
    return load_world().World()


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture(scope="session")
def tiny():
    """Two synthetic clients of 40 graphs: 32 to train on, 8 held out."""

    def make(*overrides):
        sizes = ["dataset.synthetic.domains=2", "dataset.synthetic.graphs=40"]
        return choose("synthetic/quick", ["algorithm=fedavg", *sizes, *overrides])

    return make


def copy_parameters(client, module):
    """Give a peer's network the parameters of a client."""
    for slot, parameter in zip(client.model.slots, module.parameters(), strict=True):
        parameter.data.copy_(client.row[slot.start : slot.stop].view(slot.shape))
