import pytest

from fedmpi.analysis.options import option_text, split_options
from fedmpi.config import locations
from fedmpi.config.suite import CaseSettings, read
from fedmpi.registry.check import build, check_suite

PAPER = {"name": "gcfl", "protocol": "paper"}
AVERAGED = {**PAPER, "combine": "average"}
CHUNKS = {"name": "chunks", "seed": 5, "overlap": True}
SYNTHETIC = {"name": "synthetic", "synthetic": {"nodes": [9, 15], "domains": 2}}


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"dataset": "gcfl/mix", "rounds": 7, "seed": 3, "algorithm": "fedprox"}, ""),  # defaults
        ({"algorithm": PAPER}, "algorithm.protocol=paper"),  # what a protocol sets is a default under it
        ({"algorithm": AVERAGED}, "algorithm.combine=average algorithm.protocol=paper"),
        ({"dataset": "PROTEINS", "partition": CHUNKS}, "partition=chunks partition.overlap=true"),
        ({"threads": 2, "checkpoint_seconds": 1.0, "link": {"megabits": 1.0}}, ""),  # how, not what
        ({"kernels": "reference", "share": "all"}, "share=all"),
        ({"dataset": SYNTHETIC}, "dataset.synthetic.domains=2 dataset.synthetic.nodes=[9,15]"),
    ],
)
def test_settings_that_are_no_defaults_and_have_no_column(settings, options):
    assert option_text(build("", CaseSettings("", settings)).case.config()) == options


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("seed10-NCI1-fedavg", "partition=chunks partition.clients=30"),
        ("seed10-PROTEINS-self-train-50", "partition=chunks"),
        ("seed79-PROTEINS-gcfl-plus", "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"),
        (
            "seed10-IMDB-BINARY-gcfl-plus-dws",
            "algorithm.eps1=0.025 algorithm.eps2=0.045 algorithm.length=5 partition=chunks",
        ),
    ],
)
def test_table_3(case, options):
    configs = {one.case.name: one.case.config() for one in check_suite(read(locations.find("gcfl/table3")))}
    assert option_text(configs[case]) == options


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"algorithm": {"name": "mine", "strength": 0.5}, "seed": 1}, "algorithm.strength=0.5"),  # unknown
        ({"algorithm": {"name": "fedavg"}, "batch_size": 32}, "batch_size=32"),  # an old record lacks some
    ],
)
def test_all_options_count_that_this_fedmpi_does_not_know(config, options):
    assert option_text({"dataset": {"name": "PROTEINS"}, **config}) == options


def test_options_by_key():
    assert split_options("partition=chunks share=all") == {"partition": "chunks", "share": "all"}
    assert split_options("") == {}
