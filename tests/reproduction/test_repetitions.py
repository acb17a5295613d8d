import pytest

from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.reproduction.repetitions import about, case_of, own_rule, pose
from fedmpi.reproduction.results import Repetition

TABLE3 = locations.find("gcfl/table3")


def posed(name, overrides=(), most=8):
    path = locations.find(name)
    claims, _ = about(path)
    return path, pose(path, claims, list(overrides), most)


def test_added_runs_have_the_least_seeds_that_the_suite_does_not_use():
    path, (first, *_) = posed("gcfl/table3")
    assert [one.seed for one in first.repetitions] == [10, 42, 79, 111, 123, 1, 2, 3]
    assert {one.split_seed for one in first.repetitions} == {123}
    assert (first.own, first.overrides(first.repetitions[4])) == (5, [])
    assert first.overrides(first.repetitions[5]) == ["seed=1"]
    cases = [case_of(path, [], first, first.claim.against, first.repetitions[place]) for place in (0, 5)]
    assert [case.name for case in cases] == ["seed10-NCI1-self-train-50", "seed1-NCI1-self-train-50"]
    assert cases[1].settings["seed"] == 1


def test_a_suite_of_splits_answers_its_tables_claims_with_further_splits():
    path, (first, *_) = posed("gcfl/splits", most=6)
    assert first.repetitions[4:] == (Repetition(5, 10), Repetition(6, 10))
    assert first.overrides(first.repetitions[5]) == ["partition.seed=6"]
    case = case_of(path, [], first, first.claim.cases, first.repetitions[5])
    assert case.name == "NCI1-split1-gcfl-partition.seed=6"
    assert (case.settings["seed"], case.settings["partition"]["seed"]) == (10, 6)


def test_claims_about_cases_that_are_left_out_are_left_out():
    _, found = posed("gcfl/table3", ["dataset=PROTEINS"])
    assert {each.claim.cases.split()[0] for each in found} == {"dataset=PROTEINS"}
    with pytest.raises(BadInput, match="method=gcfl-plus-dws: leaves no case of a claim"):
        posed("gcfl/table3", ["method=gcfl-plus-dws"])
    with pytest.raises(BadInput, match="the axis has no such value"):
        posed("gcfl/table3", ["method=gcfl-minus"])


def test_a_suite_that_no_claim_is_about_is_refused():
    with pytest.raises(BadInput, match=r"claims\.csv: no claim is about gcfl/figure1"):
        about(locations.find("gcfl/figure1"))


def test_the_papers_own_rule_decides():
    claims, _ = about(TABLE3)
    assert own_rule(claims[0], "last round") == "as published"
    (claim, *_), _ = about(locations.find("fedcch/table1"))
    assert own_rule(claim, "another") == "last round"
