import pytest

from fedmpi.analysis.cells import by_rule, cells, seeds_text, titles, without
from fedmpi.errors import BadInput
from fedmpi.store.reader import load_run

ACCURACY = [[0.5, 0.6]]


def test_seeds_of_one_configuration_make_a_cell(record):
    runs = [
        record({"seed": 42, "name": "x"}, test_accuracy=[[0.7, 0.8]]),
        record({"seed": 10, "name": "y", "suite": "other"}, test_accuracy=ACCURACY),
        record({"algorithm": {"name": "gcfl"}}, test_accuracy=ACCURACY),
    ]
    first, second = cells(runs)
    assert list(first.runs) == [10, 42]
    assert (first.algorithm, second.algorithm, first.dataset) == ("fedavg", "gcfl", "PROTEINS")
    assert first.over_seeds(by_rule("last round")).tolist() == pytest.approx([60, 70])
    assert first.over_seeds(by_rule("last round"), [42]).tolist() == [70, 80]


def test_a_run_twice_is_refused(record):
    runs = [record({}, test_accuracy=ACCURACY), record({"name": "again"}, test_accuracy=ACCURACY)]
    with pytest.raises(BadInput, match="are runs of one configuration; leave one out"):
        cells(runs)


def test_other_clients_for_another_seed_are_refused(record):
    runs = [
        record({}, test_accuracy=ACCURACY),
        record({"seed": 42}, clients=("a", "c"), test_accuracy=ACCURACY),
    ]
    with pytest.raises(BadInput, match="has other clients than"):
        cells(runs)


def test_a_title_says_what_tells_its_cell_from_others_of_that_name():
    configs = [{"rounds": 50, "mu": {"b": 1}}, {"rounds": 200, "mu": {"b": 1}}, {"rounds": 50}]
    assert titles(["alone", "alone", "prox"], configs) == [
        "alone, rounds = 50",
        "alone, rounds = 200",
        "prox",
    ]


def test_settings_are_taken_out_by_their_dotted_names():
    config = {"partition": {"name": "chunks", "overlap": True}, "seed": 1}
    assert without(config, "partition.overlap", "seed", "none") == {"partition": {"name": "chunks"}}


def test_the_file_of_an_algorithm_goes_with_the_algorithm():
    config = {"algorithm": {"name": "own"}, "plugin": {"own.py": "5e0b"}, "seed": 1}
    assert without(config, "algorithm") == {"seed": 1}
    assert without(config, "seed") == {"algorithm": {"name": "own"}, "plugin": {"own.py": "5e0b"}}
    other = {"algorithm": {"name": "fedavg"}, "seed": 1}
    assert titles(["a", "a"], [config, other]) == ["a, name = own", "a, name = fedavg"]


def test_what_is_said_of_seeds():
    assert seeds_text([(10,), (10,)]) == "seed 10"
    assert seeds_text([(10, 42), (10, 42)]) == "means over seeds 10, 42"
    assert seeds_text([(10, 42), (10,)]) == "means over 1 to 2 seeds, not the same everywhere"


def test_runs_whose_clients_have_no_value_of_their_own_are_named(make_scored, tmp_path):
    run = load_run(make_scored(tmp_path / "a", "rmse", [1.5]))
    with pytest.raises(BadInput, match="no RMSE by client; leave it out"):
        by_rule("last round")(run)
