"""The page of a made-up track says what was planted in its rows, and no more."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fedmpi.analysis.leaderboard import findings, tables
from fedmpi.analysis.leaderboard.board import board
from fedmpi.analysis.leaderboard.budget import expected, tried
from fedmpi.analysis.leaderboard.page import pages
from fedmpi.analysis.leaderboard.rows import TUNING
from fedmpi.analysis.leaderboard.track import track
from tests.analysis import planted

POINTS = {"fedavg": 0.0, "self-train": -5.0, "fedprox": 0.0, "ditto": 3.0, "fedper": 3.0}
"""FedPer's lead is taken from it on half of the federations, so that it is no decision."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("track") / "planted.toml"
    path.write_text(planted.SUITE)
    return track(path)


@pytest.fixture(scope="module")
def rows(found):
    return [
        replace(row, test=row.test - 0.04) if row.method == "fedper" and row.data[0] == "B" else row
        for row in planted.rows(found, POINTS)
    ]


@pytest.fixture(scope="module")
def whole(found, rows):
    return board(found, rows, planted.constants(found))


def test_what_is_planted_is_found(whole):
    decisions = {method: each.decision for method, each in whole.comparisons.items()}
    assert decisions == {
        "ditto": "better",
        "fedper": "undecided",
        "fedprox": "equivalent",
        "self-train": "undecided",
    }
    assert whole.comparisons["ditto"].mean == pytest.approx(3.0, abs=0.4)
    assert whole.tally("ditto", "fedavg") == (8, 0)


def test_the_first_screen_says_which_method_by_how_much_at_what_cost_and_how_sure(whole):
    said = findings.sentences(whole)
    assert said[0] == "All 8 federations are finished."
    assert said[1].startswith("Ditto has the largest mean lead over FedAvg: +3.")
    assert said[1].endswith(
        "which 100% of the runs reach. It is the largest of 4 means, so likely too large. "
        "It is judged better, with probability above 0.99."
    )
    assert said[2] == (
        "Against FedAvg 2 of 4 methods are decided over the federations, with a probability of at least 0.95: "
        "1 better (Ditto) and 1 within 1 point on the typical federation (FedProx). Of the others "
        "significantly better on at least one federation: FedPer and self-train; worse: "
        "FedPer and self-train."
    )
    assert said[3] == (
        "Verdicts against FedAvg on single federations: 16 better (4 of them on A-dirichlet0.1), 13 worse, "
        "3 undecided; significant would be a lead of 0.3 to 0.5 points, by federation."
    )
    assert said[4].startswith("8 federations are few: ")
    assert said[5].startswith("Ditto has the best average rank: 1.") and len(said) == 6


def test_a_second_tuning_of_fedavg_shows_what_is_chance(found, rows):
    again = [
        replace(
            row,
            method="fedavg-again",
            case=f"{row.case}-again",
            test=row.test + (0.3945 + row.seed / 1000 if row.data == "A-iid10" else 0),
        )
        for row in rows
        if row.method == "fedavg"
    ]
    said = findings.sentences(board(found, [*rows, *again], planted.constants(found)))
    assert next(each for each in said if each.startswith("FedAvg tuned again")) == (
        "FedAvg tuned again, with other candidates, differs from FedAvg by +0.0 to +40.0 points on single "
        "federations, +5.0 on average: so much may be the tuning's."
    )
    assert said[1].startswith("Ditto has the largest mean lead")


def test_federations_are_grouped_by_partition_and_by_what_reference_methods_show(whole):
    lines = findings.kinds([whole]).splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [(label, count) for _, label, count, *_ in cells] == [
        ("all", "8"),
        ("iid", "4"),
        ("Dirichlet shares", "2"),
        ("by structure", "2"),
        ("where self-train is worse than FedAvg", "6"),
        ("where self-train is better than FedAvg", "2"),
    ]
    best = ["Ditto", "Ditto", "self-train", "Ditto", "Ditto", "self-train"]
    assert [shown.split()[0] for _, _, _, shown, *_ in cells] == best
    sure = [f"better on {count}, worse on 0" for count in (8, 4, 2, 2, 6, 2)]
    assert [said for *_, said, _, _, _, _ in cells] == [f"P(better) above 0.99; {sure[0]}", *sure[1:]]


@pytest.mark.parametrize(
    ("partition", "kind"),
    [("iid", "iid"), ("dirichlet-label", "Dirichlet shares"), ("metadata", "by structure"), ("chunks", "")],
)
def test_the_name_of_a_partition_says_its_kind(partition, kind):
    assert findings.kind(partition) == kind


def test_unfinished_federations_are_open_and_not_judged(found, rows):
    some = [row for row in rows if row.data[0] == "A" or row.method != "fedper"]
    part = board(found, some, planted.constants(found))
    assert part.finished == ["A-iid10", "A-iid30", "A-dirichlet0.1", "A-scaffold5"]
    said = findings.sentences(part)
    assert said[0].endswith("judged: B-iid10, B-iid30, B-dirichlet0.1 and B-scaffold5.")
    assert "interval" not in said[1] and "probability" not in said[1]
    assert not any("rank" in each for each in said)
    assert said[2].startswith(
        "With fewer than 5 federations no method is decided over all of them. Significantly better"
    )
    assert part.verdicts("B-iid10") == {} and part.comparisons["ditto"].datasets == 4


def test_the_expected_score_is_that_of_the_candidates(found, whole):
    # Planted candidates are 0, 10 and 20 points below the first: the best of three with 1/3, then 5/9.
    assert tried(whole, "ditto") == [3] * 8
    one, two, *more = expected(whole, "ditto")
    assert (two - one) == pytest.approx(0.1 * (8 / 9 - 4 / 9))
    assert all(math.isnan(each) for each in more)


def test_winners_with_the_smallest_or_largest_rate_of_their_optimizer_are_counted(found, rows):
    rates = {"draw1": "sgd 0.2", "draw2": "adam 0.1", "draw3": "adam 0.3", "fedper": "adam 0.15"}

    def settings(row):
        name = row.method if row.method == "fedper" and row.stage != TUNING else row.case.split("-")[-1]
        optimizer, rate = rates.get(name, "sgd 0.2").split()
        return f"optimizer={optimizer} optimizer.lr={rate}{row.data[0] == 'B':d}"

    rows = [replace(row, settings=settings(row)) for row in rows]
    found = board(found, rows, planted.constants(found))
    lines = [line.split("|")[1:-1] for line in tables.choices(found).splitlines()]
    cells = {label.strip(): [each.strip() for each in others] for label, *others in lines}
    assert cells["`optimizer=adam`"] == ["67%", *["1 of 5"] * 8]
    assert cells["the smallest or largest `optimizer.lr` tried"] == ["100%", *["4 of 5"] * 8]


def test_a_candidate_that_diverges_has_the_score_of_the_constant(found, rows):
    lost = [
        replace(row, status="diverged", val=math.nan, test=math.nan)
        if row.stage == TUNING and row.method == "ditto" and row.case.endswith(("201-draw1", "draw3"))
        else row
        for row in rows
    ]
    judged = board(found, lost, planted.constants(found, 0.25))
    second = [row.test for row in rows if row.method == "ditto" and row.case.endswith("draw2")]
    assert expected(judged, "ditto")[0] == pytest.approx((sum(second) / len(second) + 2 * 0.25) / 3)


def test_the_picture_has_a_line_for_each_method_in_the_colour_of_its_decision(whole):
    written = pages([whole], "page.md")
    picture = ElementTree.fromstring(written["images/leaderboard-demo-planted.svg"])
    texts = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [texts[texts.index(name) + 2] for name in ("Ditto", "FedProx")] == ["×2.00", "×1.00"]
    dots = [each.get("fill") for each in picture.iter("{http://www.w3.org/2000/svg}circle")][4:]
    assert dots == ["#0072B2", "#777777", "#009E73", "#777777"]


def test_the_picture_of_budgets_names_the_best_self_train_and_fedavg(whole):
    picture = ElementTree.fromstring(pages([whole], "page.md")["images/leaderboard-demo-planted-budget.svg"])
    texts = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("n = ")] == ["n = 1", "n = 2"]
    assert {text.split()[0] for text in texts[-5:]} == {"Ditto", "FedPer", "FedProx", "FedAvg", "self-train"}


def test_the_page_has_its_tables(whole):
    text = pages([whole], "page.md")["page.md"]
    assert "| Ditto | 3 | 0% | 63." in text and "| candidates | diverged | n = 1 | n = 2 |" in text
    assert (
        "worst decile %" in text and "bytes to target" in text and "virtual time to target, times" not in text
    )
    assert "| against self-train | against the constant |" in text
