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


@pytest.mark.parametrize(
    ("settings", "clients", "words"),
    [
        ({"name": "again"}, ("a", "b"), "are runs of one configuration; leave one out"),
        ({"seed": 42}, ("a", "c"), "has other clients than"),
    ],
)
def test_what_makes_no_cell_is_refused(record, settings, clients, words):
    runs = [record({}, test_accuracy=ACCURACY), record(settings, clients, test_accuracy=ACCURACY)]
    with pytest.raises(BadInput, match=words):
        cells(runs)


def test_a_title_says_what_tells_its_cell_from_others_of_that_name():
    configs = [{"rounds": 50, "mu": {"b": 1}}, {"rounds": 200, "mu": {"b": 1}}, {"rounds": 50}]
    found = titles(["alone", "alone", "prox"], configs)
    assert found == ["alone, rounds = 50", "alone, rounds = 200", "prox"]


def test_an_axis_that_some_do_not_have_is_told_by_its_name_and_what_differs_below_it():
    tables = [{"name": "top-k", "share": 0.1}, {"name": "top-k", "share": 0.01}, {"name": "sign"}]
    configs = [{}, *({"compression": each} for each in tables)]
    kinds = ["none", "top-k (share 0.1)", "top-k (share 0.01)", "sign"]
    found = titles(["a"] * 4, configs)
    assert found == [f"a, compression = {each}" for each in kinds]


def test_settings_are_taken_out_by_their_dotted_names_and_with_an_algorithm_its_file():
    config = {"partition": {"name": "chunks", "overlap": True}, "seed": 1}
    assert without(config, "partition.overlap", "seed", "none") == {"partition": {"name": "chunks"}}
    own = {"algorithm": {"name": "own"}, "plugin": {"own.py": "5e0b"}, "seed": 1}
    assert without(own, "algorithm") == {"seed": 1}
    assert without(own, "seed") == {"algorithm": {"name": "own"}, "plugin": {"own.py": "5e0b"}}
    other = {"algorithm": {"name": "fedavg"}, "seed": 1}
    assert titles(["a", "a"], [own, other]) == ["a, name = own", "a, name = fedavg"]


def test_what_is_said_of_seeds():
    assert seeds_text([(10,), (10,)]) == "seed 10"
    assert seeds_text([(10, 42), (10, 42)]) == "means over seeds 10, 42"
    assert seeds_text([(10, 42), (10,)]) == "means over 1 to 2 seeds, not the same everywhere"


def test_runs_whose_clients_have_no_value_of_their_own_are_named(make_scored, tmp_path):
    run = load_run(make_scored(tmp_path / "a", "rmse", [1.5]))
    with pytest.raises(BadInput, match="no RMSE by client; leave it out"):
        by_rule("last round")(run)
