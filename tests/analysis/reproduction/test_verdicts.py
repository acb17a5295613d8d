import pytest

from fedmpi.analysis.reproduction.published import Claim, read
from fedmpi.analysis.reproduction.results import Results
from fedmpi.analysis.reproduction.verdicts import verdict_table, verdicts
from fedmpi.config import locations
from fedmpi.errors import BadInput

FIGURES = read(locations.find("gcfl/table3").with_name("published.csv"))
PLUS = "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"
CASES = "dataset=PROTEINS method=gcfl-plus"


def claim(kind, against):
    return Claim("GCFL", kind, "it is so", "gcfl/table3", CASES, f"dataset=PROTEINS method={against}")


def test_a_lead_is_judged_against_the_published_one(make_rows):
    # Published: 0.7776 - 0.7490 = 0.0286, so 0.0086 is enough.
    last = {10: [0.70], 42: [0.701], 79: [0.699]}
    largest = {10: [0.75], 42: [0.751], 79: [0.749]}
    rows = make_rows("gcfl-plus", last, published=largest, options=PLUS)
    rows += make_rows("fedavg", {10: [0.70], 42: [0.70], 79: [0.70]})
    (found,) = verdicts([claim("lead", "fedavg")], FIGURES, Results(rows))
    assert found.published == "+0.0286 (0.7776 against 0.7490)"
    assert found.shown["last round"] == "+0.0000 ± 0.0025"
    assert {rule: str(answer) for rule, answer in found.judged.items()} == {
        "last round": "**refuted**",
        "best by validation": "**refuted**",
        "as published": "**confirmed**",
    }


def test_improved_clients_are_counted_over_the_self_train_of_the_claim(make_rows):
    # Published: 9 of 10.
    better, worse = [0.8] * 9 + [0.7], [0.6] * 10
    rows = make_rows("gcfl-plus", {10: worse, 42: worse}, published={10: better, 42: better}, options=PLUS)
    rows += make_rows("self-train", {10: [0.75] * 10, 42: [0.75] * 10})
    (found,) = verdicts([claim("improved", "self-train-200")], FIGURES, Results(rows))
    assert (found.published, found.seeds) == ("9/10", 2)
    assert found.shown == {"last round": "0/10", "best by validation": "0/10", "as published": "9/10"}
    # One client in ten is the margin, and half a client the least error: nothing is sure with two seeds.
    assert str(found.judged["as published"]) == "undecided at 2 seeds"
    assert "| it is so | self-train, 200 rounds | 9/10 | 2 | 0/10 |" in verdict_table([found])


def test_without_runs_a_claim_is_open():
    (found,) = verdicts([claim("lead", "fedavg")], FIGURES, Results([]))
    assert {str(answer) for answer in found.judged.values()} == {"open"}


def test_a_claim_about_no_published_cell_is_refused():
    with pytest.raises(BadInput, match="method=gcfl-plus-dws: a claim about it, but no published average"):
        verdicts([claim("lead", "gcfl-plus-dws")], FIGURES, Results([]))


def test_as_good_is_judged_against_no_lead_whatever_the_tables_print(make_rows):
    rows = make_rows("gcfl-plus", {10: [0.70], 42: [0.701], 79: [0.699]}, options=PLUS)
    rows += make_rows("fedavg", {10: [0.70], 42: [0.70], 79: [0.70]})
    (found,) = verdicts([claim("level", "fedavg")], FIGURES, Results(rows))
    assert found.published == "at least +0"
    assert str(found.judged["last round"]) == "**confirmed**"
