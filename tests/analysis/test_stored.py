"""Configurations of other writers: one line, or what is there."""

import pytest

from fedmpi.analysis.stored import read_run
from fedmpi.errors import BadInput
from tests.analysis.tasks import begun, recorded


@pytest.fixture
def stored(tmp_path):
    return lambda config: read_run(begun(tmp_path / "a", config))


def test_a_setting_that_is_missing_is_named_where_it_is_needed(stored):
    config = stored({"dataset": {"name": "PROTEINS"}}).config
    assert config.get("seed") is None
    for table in (config, config | {"rounds": 3}):
        with pytest.raises(BadInput, match="a: its stored configuration has no seed, which this needs"):
            table["seed"]
    with pytest.raises(BadInput, match=r"has no dataset\.features, which this needs"):
        config["dataset"]["features"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"seed": "one"}, "seed: input should be a valid integer"),
        ({"dataset": 5}, "dataset: input should be a valid dictionary"),
        (
            {"partition": {"name": "iid", "seed": -1}},
            r"partition.seed: input should be greater than or equal to 0",
        ),
    ],
)
def test_a_setting_of_another_kind_is_refused(stored, config, words):
    with pytest.raises(BadInput, match=words):
        stored(config)


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        ({"source": []}, "source: input should be a valid dictionary"),
        ({"mpi": {"ranks": [{"cores": ["one"]}]}}, r"mpi.ranks.0.cores.0: input should be a valid integer"),
        ({"packages": {"numpy": 1}}, "packages.numpy: input should be a valid dictionary"),
        ({"parameters": [1, 2]}, "its provenance has parameters of other clients than its own"),
    ],
)
def test_a_provenance_of_another_kind_is_refused(tmp_path, provenance, words):
    recorded(tmp_path / "a", {}, ["c"], [], ranks=1, status="interrupted", provenance=provenance)
    with pytest.raises(BadInput, match=words):
        read_run(tmp_path / "a")
