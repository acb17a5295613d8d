import pytest

from fedmpi.analysis.rows import RULES
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.reproduction.claims import Stated
from fedmpi.reproduction.overview import of_claims
from fedmpi.reproduction.published import Claim, read
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.verdicts import in_short, verdict_tables, verdicts

FIGURES = read(locations.find("gcfl/table3").with_name("published.csv"))
PLUS = "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"
LAST = "last round"
NEAR_070 = {10: [0.70], 42: [0.701], 79: [0.699]}


def claim(kind, against, over="", reading=""):
    cases = (name and f"dataset=PROTEINS method={name}" for name in ("gcfl-plus", against, over))
    return Claim("GCFL", kind, "text", "", "it is so", reading, "", "gcfl/table3", *cases)


def always(*accuracies):
    """Return the same accuracies of clients for three seeds."""
    return dict.fromkeys((10, 42, 79), accuracies)


@pytest.fixture
def judged(make_rows):
    """Return a function that judges claims from accuracies of GCFL+ and of others, called as ``fedavg 200``."""

    def judge(claims, plus, others, published=None):
        rows = make_rows("gcfl-plus", plus, published=published, options=PLUS)
        for name, accuracies in others.items():
            algorithm, rounds = name.split()
            rows += make_rows(algorithm, accuracies, rounds=rounds)
        return verdicts(claims, FIGURES, Results(rows))

    return judge


def test_a_lead_is_judged_against_the_published_one(judged):
    # Published: 0.7776 - 0.7490 = 0.0286, so 0.0086 is enough.
    largest = {10: [0.75], 42: [0.751], 79: [0.749]}
    (found,) = judged([claim("lead", "fedavg")], NEAR_070, {"fedavg 200": always(0.70)}, largest)
    assert found.published == "+0.0286 (0.7776 against 0.7490)"
    assert found.shown[LAST] == {"": "+0.0000 ± 0.0025"}
    assert {rule: str(answer) for rule, answer in found.judged.items()} == {
        "last round": "**refuted**",
        "best by validation": "**refuted**",
        "as published": "**confirmed**",
    }


def test_improved_clients_are_counted_over_the_self_train_of_the_claim(judged):
    # Published: 9 of 10.
    better, worse = [0.8] * 9 + [0.7], [0.6] * 10
    (found,) = judged(
        [claim("improved", "self-train-200")],
        {10: worse, 42: worse},
        {"self-train 200": {10: [0.75] * 10, 42: [0.75] * 10}},
        {10: better, 42: better},
    )
    assert (found.published, found.seeds) == ("9/10", "2")
    assert [found.shown[rule][""] for rule in RULES] == ["0/10", "0/10", "9/10"]
    # One client in ten is the margin, and half a client the least error: nothing is sure with two seeds.
    assert str(found.judged["as published"]) == "undecided at 2 seeds, about 4 needed"
    ((heading, table),) = verdict_tables([found], [LAST])
    assert heading == "Clients that gain over self-train"
    assert "| it is so | text | self-train, 200 rounds | 9/10 | 2 | 0/10 | undecided" in table


def test_without_runs_a_claim_is_not_run(empty):
    (found,) = verdicts([claim("lead", "fedavg")], FIGURES, empty)
    assert {str(answer) for answer in found.judged.values()} == {"not run"}


def test_a_claim_about_no_published_cell_is_refused(empty):
    with pytest.raises(BadInput, match="method=gcfl-plus-dws: a claim about it, but no published average"):
        verdicts([claim("lead", "gcfl-plus-dws")], FIGURES, empty)


@pytest.mark.parametrize(
    ("kind", "lead", "verdict"),
    [
        ("level", 0.0, "confirmed"),  # whatever the tables print
        ("above", 0.004, "confirmed"),
        ("above", -0.004, "refuted"),
        ("alike", 0.004, "confirmed"),
        ("alike", -0.03, "refuted"),
        ("behind", 0.02, "confirmed"),  # published: 0.0286
        ("behind", 0.1, "refuted"),
    ],
)
def test_orderings_have_no_margin_and_likeness_has_it_on_both_sides(judged, kind, lead, verdict):
    plus, fedavg = ({s: [mean + 1e-4 * s] for s in (10, 42, 79)} for mean in (0.7 + lead, 0.7))
    (found,) = judged([claim(kind, "fedavg")], plus, {"fedavg 200": fedavg})
    assert str(found.judged[LAST]) == f"**{verdict}**"
    assert kind != "level" or found.published == "at least +0"


def test_of_errors_the_smaller_is_above(empty):
    figures = read(locations.find("fedgraphnn/table20").with_name("published.csv"))
    cases = [f"data=ESOL model=gcn method={name}" for name in ("centralised", "fedavg")]
    place = ("FedGraphNN", "above", "table", "Table 20", "x", "", "RMSE", "fedgraphnn/table20")
    # An error of 1.0190 is 0.4160 better than one of 1.4350.
    stated = Stated(Claim(*place, *cases, ""), figures, empty.one)
    assert stated.printed == "+0.4160 (1.0190 against 1.4350)"


def test_a_gain_is_a_part_of_self_trains_average(judged):
    # Published: 0.7776 / 0.7213 - 1 = 7.81 %, less 0.02 / 0.7213 = 2.77 %: 5.03 % is enough.
    (found,) = judged([claim("gain", "self-train-50")], always(0.66), {"self-train 50": always(0.60)})
    assert (found.published, found.shown[LAST][""]) == ("+7.81 %", "+10.00 % ± 0.00")
    assert str(found.judged[LAST]) == "**confirmed**"


def test_clients_beyond_another_methods_and_smallest_gains(judged):
    # Of ten clients GCFL+ improves nine and FedAvg four; smallest gains -0.1 and -0.3.
    claims = [claim(kind, "fedavg", "self-train-50") for kind in ("more", "twice", "least")]
    others = {"fedavg 200": always(*[0.6] * 4, *[0.2] * 6), "self-train 50": always(*[0.5] * 10)}
    more, twice, least = judged(claims, always(*[0.6] * 9, 0.4), others)
    assert (more.published, more.shown[LAST][""]) == ("9 against 6 of 10", "+5 ± 2.2")
    assert (twice.published, twice.shown[LAST][""]) == ("9 against 6 of 10", "+1 ± 2.2")
    assert least.published == "+0.0461 (-0.0154 against -0.0615)"
    assert least.shown[LAST][""] == "+0.2000 ± 0.0000"
    assert str(least.judged[LAST]) == "**confirmed**"


def test_two_readings_of_a_claim_stand_side_by_side_each_with_its_verdict(judged):
    claims = [claim("level", "fedavg", reading="one"), claim("level", "fedprox", reading="other")]
    others = {"fedavg 200": always(0.60), "fedprox 200": always(0.80)}
    (found,) = judged(claims, NEAR_070, others)
    assert (found.seeds, str(found.judged[LAST])) == ("3, 3", "**depends on the reading**")
    ((_, table),) = verdict_tables([found], [LAST])
    headings, _, line = table.splitlines()
    assert headings.endswith("| last round: one | verdict | last round: other | verdict | both together |")
    assert line.endswith(
        "| +0.1000 ± 0.0025 | **confirmed** | -0.1000 ± 0.0025 | **refuted** | **depends on the reading** |"
    )
    assert in_short([found], [LAST]).splitlines() == [
        "- Of 1 claims of the text, last round: 0 refuted, 0 confirmed, 1 depends on the reading, 0 undecided, 0 not run.",
        "- Read one: of 1 of these, last round: 0 refuted, 1 confirmed, 0 undecided, 0 not run.",
        "- Read other: of 1 of these, last round: 1 refuted, 0 confirmed, 0 undecided, 0 not run.",
    ]
    tallies = of_claims([found], [LAST])
    assert [(each.what, each.counts) for each in tallies] == [
        ("claims of the text", [0, 0, 1, 0]), ("claims read one", [1, 0, 0, 0]), ("claims read other", [0, 1, 0, 0]),
    ]  # fmt: skip
    assert not any(each.named("confirmed") + each.named("refuted or not reached") for each in tallies)


def test_a_reading_that_no_suite_computes_is_not_run(judged):
    other = Claim("GCFL", "level", "text", "", "it is so", "other", "", "", "", "", "")
    claims = [claim("level", "fedavg", reading="one"), other]
    (found,) = judged(claims, NEAR_070, {"fedavg 200": always(0.60)})
    assert found.shown[LAST] == {"one": "+0.1000 ± 0.0025", "other": "not run"}
    assert str(found.judged[LAST]) == "not run"
