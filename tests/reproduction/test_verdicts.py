import pytest

from fedmpi.analysis.rows import RULES
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.reproduction.claims import Book, printed
from fedmpi.reproduction.overview import of_claims
from fedmpi.reproduction.published import Claim, read
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.verdicts import in_short, verdict_tables, verdicts

FIGURES = read(locations.find("gcfl/table3").with_name("published.csv"))
PLUS = "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"
CASES = "dataset=PROTEINS method=gcfl-plus"


def claim(kind, against, over="", reading=""):
    place = (
        "gcfl/table3",
        CASES,
        f"dataset=PROTEINS method={against}",
        over and f"dataset=PROTEINS method={over}",
    )
    return Claim("GCFL", kind, "text", "it is so", reading, *place)


def test_a_lead_is_judged_against_the_published_one(make_rows):
    # Published: 0.7776 - 0.7490 = 0.0286, so 0.0086 is enough.
    last = {10: [0.70], 42: [0.701], 79: [0.699]}
    largest = {10: [0.75], 42: [0.751], 79: [0.749]}
    rows = make_rows("gcfl-plus", last, published=largest, options=PLUS)
    rows += make_rows("fedavg", {10: [0.70], 42: [0.70], 79: [0.70]})
    (found,) = verdicts([claim("lead", "fedavg")], FIGURES, Results(rows))
    assert found.published == "+0.0286 (0.7776 against 0.7490)"
    assert found.shown["last round"] == {"": "+0.0000 ± 0.0025"}
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
    assert (found.published, found.seeds) == ("9/10", "2")
    assert [found.shown[rule][""] for rule in RULES] == ["0/10", "0/10", "9/10"]
    # One client in ten is the margin, and half a client the least error: nothing is sure with two seeds.
    assert str(found.judged["as published"]) == "undecided at 2 seeds, about 4 needed"
    ((heading, table),) = verdict_tables([found], ["last round"])
    assert heading == "Clients that gain over self-train"
    assert "| it is so | text | self-train, 200 rounds | 9/10 | 2 | 0/10 | undecided" in table


def test_without_runs_a_claim_is_not_run():
    (found,) = verdicts([claim("lead", "fedavg")], FIGURES, Results([]))
    assert {str(answer) for answer in found.judged.values()} == {"not run"}


def test_a_claim_about_no_published_cell_is_refused():
    with pytest.raises(BadInput, match="method=gcfl-plus-dws: a claim about it, but no published average"):
        verdicts([claim("lead", "gcfl-plus-dws")], FIGURES, Results([]))


def test_as_good_is_judged_against_no_lead_whatever_the_tables_print(make_rows):
    rows = make_rows("gcfl-plus", {10: [0.70], 42: [0.701], 79: [0.699]}, options=PLUS)
    rows += make_rows("fedavg", {10: [0.70], 42: [0.70], 79: [0.70]})
    (found,) = verdicts([claim("level", "fedavg")], FIGURES, Results(rows))
    assert found.published == "at least +0"
    assert str(found.judged["last round"]) == "**confirmed**"


@pytest.mark.parametrize(
    ("kind", "lead", "verdict"),
    [
        ("above", 0.004, "confirmed"),
        ("above", -0.004, "refuted"),
        ("alike", 0.004, "confirmed"),
        ("alike", -0.03, "refuted"),
        ("behind", 0.02, "confirmed"),  # published: 0.0286
        ("behind", 0.1, "refuted"),
    ],
)
def test_orderings_have_no_margin_and_likeness_has_it_on_both_sides(make_rows, kind, lead, verdict):
    rows = make_rows("gcfl-plus", {s: [0.7 + lead + 1e-4 * s] for s in (10, 42, 79)}, options=PLUS)
    rows += make_rows("fedavg", {s: [0.7 + 1e-4 * s] for s in (10, 42, 79)})
    (found,) = verdicts([claim(kind, "fedavg")], FIGURES, Results(rows))
    assert str(found.judged["last round"]) == f"**{verdict}**"


def test_of_errors_the_smaller_is_above():
    figures = read(locations.find("fedgraphnn/table20").with_name("published.csv"))
    cases = [f"data=ESOL model=gcn method={name}" for name in ("centralised", "fedavg")]
    found = Claim(
        "FedGraphNN", "above", "table", "x", "", "fedgraphnn/table20", *cases, "", "RMSE", "Table 20"
    )
    # An error of 1.0190 is 0.4160 better than one of 1.4350.
    assert printed(Book(figures, Results([])), found) == "+0.4160 (1.0190 against 1.4350)"


def test_a_gain_is_a_part_of_self_trains_average(make_rows):
    # Published: 0.7776 / 0.7213 - 1 = 7.81 %, less 0.02 / 0.7213 = 2.77 %: 5.03 % is enough.
    seeds = (10, 42, 79)
    rows = make_rows("gcfl-plus", {seed: [0.66] for seed in seeds}, options=PLUS)
    rows += make_rows("self-train", {seed: [0.60] for seed in seeds}, rounds="50")
    (found,) = verdicts([claim("gain", "self-train-50")], FIGURES, Results(rows))
    assert (found.published, found.shown["last round"][""]) == ("+7.81 %", "+10.00 % ± 0.00")
    assert str(found.judged["last round"]) == "**confirmed**"


def test_clients_beyond_another_methods_and_smallest_gains(make_rows):
    seeds = (10, 42, 79)
    # Of ten clients GCFL+ improves nine and FedAvg four; smallest gains -0.1 and -0.3.
    rows = make_rows("gcfl-plus", {seed: [0.6] * 9 + [0.4] for seed in seeds}, options=PLUS)
    rows += make_rows("fedavg", {seed: [0.6] * 4 + [0.2] * 6 for seed in seeds})
    rows += make_rows("self-train", {seed: [0.5] * 10 for seed in seeds}, rounds="50")
    claims = [claim(kind, "fedavg", "self-train-50") for kind in ("more", "twice", "least")]
    more, twice, least = verdicts(claims, FIGURES, Results(rows))
    assert (more.published, more.shown["last round"][""]) == ("9 against 6 of 10", "+5 ± 2.2")
    assert (twice.published, twice.shown["last round"][""]) == ("9 against 6 of 10", "+1 ± 2.2")
    assert least.published == "+0.0461 (-0.0154 against -0.0615)"
    assert least.shown["last round"][""] == "+0.2000 ± 0.0000"
    assert str(least.judged["last round"]) == "**confirmed**"


def test_two_readings_of_a_claim_stand_side_by_side_each_with_its_verdict(make_rows):
    last = {10: [0.70], 42: [0.701], 79: [0.699]}
    rows = make_rows("gcfl-plus", last, options=PLUS)
    rows += make_rows("fedavg", {10: [0.60], 42: [0.60], 79: [0.60]})
    rows += make_rows("fedprox", {10: [0.80], 42: [0.80], 79: [0.80]})
    claims = [claim("level", "fedavg", reading="one"), claim("level", "fedprox", reading="other")]
    (found,) = verdicts(claims, FIGURES, Results(rows))
    assert (found.seeds, str(found.judged["last round"])) == ("3, 3", "**depends on the reading**")
    ((_, table),) = verdict_tables([found], ["last round"])
    headings, _, line = table.splitlines()
    assert headings.endswith(
        "| seeds | last round: one | verdict | last round: other | verdict | both together |"
    )
    assert line.endswith(
        "| +0.1000 ± 0.0025 | **confirmed** | -0.1000 ± 0.0025 | **refuted** | **depends on the reading** |"
    )
    assert in_short([found], ["last round"]).splitlines() == [
        "- Of 1 claims of the text, last round: 0 refuted, 0 confirmed, 1 depends on the reading, 0 undecided, 0 not run.",
        "- Read one: of 1 of these, last round: 0 refuted, 1 confirmed, 0 undecided, 0 not run.",
        "- Read other: of 1 of these, last round: 1 refuted, 0 confirmed, 0 undecided, 0 not run.",
    ]
    tallies = of_claims([found], ["last round"])
    assert [(each.what, each.counts) for each in tallies] == [
        ("claims of the text", [0, 0, 1, 0]), ("claims read one", [1, 0, 0, 0]), ("claims read other", [0, 1, 0, 0]),
    ]  # fmt: skip
    assert [each.confirmed + each.denied for each in tallies] == [[], [], []]


def test_a_reading_that_no_suite_computes_is_not_run(make_rows):
    rows = make_rows("gcfl-plus", {10: [0.70], 42: [0.701], 79: [0.699]}, options=PLUS)
    rows += make_rows("fedavg", {10: [0.60], 42: [0.60], 79: [0.60]})
    other = Claim("GCFL", "level", "text", "it is so", "other", "", "", "", "")
    (found,) = verdicts([claim("level", "fedavg", reading="one"), other], FIGURES, Results(rows))
    assert found.shown["last round"] == {"one": "+0.1000 ± 0.0025", "other": "not run"}
    assert str(found.judged["last round"]) == "not run"
