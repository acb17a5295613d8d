import pytest

from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.samples import Measurement, Samples, Turns, rates, ratios
from fedmpi.errors import BadInput


def test_raw_samples_stay_beside_median_and_extremes():
    found = Measurement({"phase": "train"}, {"wall_seconds": Samples.of("s", [3, 1, 2, 9])}).record()
    figure = {"unit": "s", "samples": [3.0, 1.0, 2.0, 9.0], "median": 2.5, "minimum": 1.0, "maximum": 9.0}
    assert found == {"phase": "train", "figures": {"wall_seconds": figure}}


def test_warm_up_is_done_and_not_measured():
    calls = []
    seconds = Turns(5, 3).seconds(lambda: calls.append(1))
    assert (len(calls), len(seconds.values), seconds.unit) == (8, 5, "s")


def test_actions_take_turns():
    calls = []
    actions = {name: lambda turn, name=name: calls.append(name) or turn for name in "ab"}
    assert Turns(2, 1).of(actions) == {"a": (1, 2), "b": (1, 2)}
    assert calls == ["a", "b"] * 3


def test_ratios_and_rates_are_those_of_pairs():
    seconds = Samples.of("s", [2.0, 4.0])
    assert ratios(Samples.of("s", [4.0, 4.0]), seconds) == Samples("1", (2.0, 1.0))
    assert rates("GFLOP/s", [1.0, 8.0], seconds) == Samples("GFLOP/s", (0.5, 2.0))


def test_without_a_suite_the_case_is_gcfls_proteins_with_fedavg():
    case = choose(None, []).case
    assert (case.dataset.name, case.partition.clients, case.algorithm.name) == ("PROTEINS", 10, "fedavg")
    nci1 = choose(None, ["dataset=NCI1", "partition.clients=30"]).case
    assert (nci1.dataset.name, nci1.partition.clients) == ("NCI1", 30)


def test_one_case_must_be_left():
    with pytest.raises(BadInput, match="gcfl/table3 has 105 cases"):
        choose("gcfl/table3", [])
