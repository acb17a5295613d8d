import pytest

from fedmpi.analysis.options import option_text, split_options
from fedmpi.config import locations
from fedmpi.config.suite import CaseSettings, read
from fedmpi.registry.check import build, check_suite


def text(**settings):
    return option_text(build("", CaseSettings("", settings)).case.config())


def test_the_defaults_say_nothing():
    assert text(dataset="gcfl/mix", rounds=7, seed=3, algorithm="fedprox") == ""


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


def test_what_a_protocol_sets_is_not_listed():
    assert text(algorithm={"name": "gcfl", "protocol": "paper"}) == "algorithm.protocol=paper"
    paper_but_average = {"name": "gcfl", "protocol": "paper", "combine": "average"}
    assert text(algorithm=paper_but_average) == "algorithm.combine=average algorithm.protocol=paper"


def test_a_split_of_its_own_is_no_option():
    chunks = {"name": "chunks", "seed": 5, "overlap": True}
    assert text(dataset="PROTEINS", partition=chunks) == "partition=chunks partition.overlap=true"


def test_how_it_is_computed_is_no_option():
    assert text(threads=2, checkpoint_seconds=1.0, link={"megabits": 1.0}) == ""
    assert text(kernels="reference", share="all") == "share=all"


def test_settings_that_are_no_text():
    synthetic = {"name": "synthetic", "synthetic": {"nodes": [9, 15], "domains": 2}}
    assert text(dataset=synthetic) == "dataset.synthetic.domains=2 dataset.synthetic.nodes=[9,15]"


def test_every_option_of_an_unknown_algorithm_counts():
    config = {"dataset": {"name": "PROTEINS"}, "algorithm": {"name": "mine", "strength": 0.5}, "seed": 1}
    assert option_text(config) == "algorithm.strength=0.5"


def test_an_old_record_may_lack_settings():
    config = {"dataset": {"name": "PROTEINS"}, "algorithm": {"name": "fedavg"}, "batch_size": 32}
    assert option_text(config) == "batch_size=32"


def test_options_by_key():
    assert split_options("partition=chunks share=all") == {"partition": "chunks", "share": "all"}
    assert split_options("") == {}
