"""Questions answered by paired comparisons of rows."""

import dataclasses

import pytest

from fedmpi.reproduction import lessons
from fedmpi.reproduction.results import Results


@pytest.fixture
def compared():
    """FedAvg against self-train of 200 rounds on PROTEINS."""
    cases = "dataset=PROTEINS method="
    sides = ("gcfl/table3", f"{cases}fedavg", "gcfl/table3", f"{cases}self-train-200")
    return lessons.Comparison("Does it help?", "PROTEINS", *sides, "")


def test_a_comparison_is_paired_by_seed(make_rows, compared):
    rows = make_rows("fedavg", {10: [0.7, 0.5], 42: [0.6, 0.8]})
    rows += make_rows("self-train", {10: [0.5, 0.5], 42: [0.7, 0.7], 79: [0.1, 0.1]})
    found = compared.difference(Results(rows), "last round")
    assert (round(found.mean, 12), found.count) == (0.05, 2)  # 0.6 - 0.5 and 0.7 - 0.7


def test_nothing_is_said_of_what_was_not_run(compared, empty):
    assert compared.difference(empty, "last round") is None


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["better", "not told apart", "too few seeds"], "**better** in 1 of 2"),
        (["worse", "better"], "**better** in 1, **worse** in 1 of 2"),
        (["not told apart", "not told apart"], "no difference shown, 2 of 2"),
        (["too few seeds", "not run"], "too few runs"),
        (["-", "-"], "there is none"),
    ],
)
def test_answers_in_words(answers, words):
    assert lessons.in_words(answers) == words


def test_no_comparison_is_there_twice():
    found = lessons.comparisons()
    assert len({(each.question, each.comparison) for each in found}) == len(found)


@pytest.fixture
def answer(make_rows, compared, monkeypatch):
    """Return a function that answers the question from FedAvg's scores by seed; self-train has 0.5."""
    monkeypatch.setattr(lessons, "comparisons", lambda: [compared])

    def ask(*scores):
        by_seed = dict(zip((10, 42, 79), scores, strict=False))
        rows = make_rows("fedavg", {seed: [score] for seed, score in by_seed.items()})
        rows += make_rows("self-train", {seed: [0.5] for seed in by_seed})
        (section,) = lessons.sections(Results(rows))
        return section

    return ask


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ((0.70, 0.71, 0.72), "**better** in 1 of 1"),
        ((0.70, 0.71), "too few runs"),
        ((0.6, 0.7, 0.8), "no difference shown, 1 of 1"),  # t = 3.46: one-sided p 0.037, two-sided 0.074
        ((0.6, 0.6, 0.6), "no difference shown, 1 of 1"),  # no spread
    ],
)
def test_surely_needs_three_seeds_a_spread_and_an_interval_without_zero(answer, scores, said):
    section = answer(*scores)
    assert section["last"] == said
    assert f"[Does it help?](#does-it-help) | {said}" in lessons.summary([section])


def test_a_maximum_that_includes_the_last_round_is_not_tested_against_it(make_rows, compared, monkeypatch):
    changed = dataclasses.replace(compared, over_suite="", over_cases="", change="as published")
    monkeypatch.setattr(lessons, "comparisons", lambda: [changed])
    last = {10: [0.7], 42: [0.71], 79: [0.72]}
    rows = make_rows(
        "fedavg", last, published={seed: [score + 0.1 + score / 100] for seed, (score,) in last.items()}
    )
    (section,) = lessons.sections(Results(rows))
    assert (section["last"], section["best"]) == (
        "never lower: it is a maximum; the table has the sizes", "**better** in 1 of 1",
    )  # fmt: skip
    assert "| +0.1071 ± 0.0002 | never lower | +0.1071 ± 0.0002 | better |" in section["table"]
