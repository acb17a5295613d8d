"""What the rows teach beyond single papers: questions, each answered by paired comparisons of stored runs.

The questions are in ``bench/lessons.csv``, a line per comparison.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import FEWEST, Estimate
from fedmpi.judging.families import corrected
from fedmpi.judging.judgement import NOT_RUN
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, HEADLINE
from fedmpi.reproduction.papers import PAPERS
from fedmpi.reproduction.published import table
from fedmpi.reproduction.results import Cell, Results
from fedmpi.reproduction.tables import signed
from fedmpi.tables.markdown import markdown_of

_COLUMNS = ("question", "comparison", "suite", "cases", "over_suite", "over_cases", "change")

_CHANGES = ("", "as published", "without twins")
"""How a line compares: two configurations; or, of the same runs, the published selection rule with another
one; or the test examples without twins in a training set with all of them."""

_SHOWN = (HEADLINE, BY_VALIDATION)
BETTER, WORSE, ALIKE, FEW = "better", "worse", "not told apart", "too few seeds"
NO_CHOICE = "-"
"""The runs have no such score: clusterings no validation."""

BY_CONSTRUCTION = "never lower"
"""A maximum that includes what it is compared with: there is nothing to test."""


@dataclass(frozen=True)
class Comparison:
    """One comparison of stored runs, paired by split and seed.

    Attributes
    ----------
    question, name : str
    suite, cases : str
        What is asked about, as ``fedmpi sweep SUITE --set ...`` takes it.
    over_suite, over_cases : str
        What it is compared with; blank where `change` says it.
    change : str
        One of ``""``, ``"as published"``, ``"without twins"``.
    """

    question: str
    name: str
    suite: str
    cases: str
    over_suite: str
    over_cases: str
    change: str

    def is_constructed(self, rule: str) -> bool:
        """Return whether it cannot be negative: as published is a maximum that includes the last round."""
        return self.change == "as published" and rule == HEADLINE

    def difference(self, results: Results, rule: str) -> Estimate | None:
        """Return by how much the score is higher, in its own unit; None without runs of both sides."""
        ours, _ = results.one(self.suite, self.cases)
        if not self.change:
            return measures.lead_of_runs(ours, results.one(self.over_suite, self.over_cases)[0], RULES[rule])
        columns = (RULES[AS_PUBLISHED], RULES[rule])
        if self.change == "without twins":
            columns = (RULES[rule].replace("score", "score_without_twins"), RULES[rule])
        return _change(ours, *columns)


def comparisons() -> list[Comparison]:
    """Return the comparisons of ``bench/lessons.csv``.

    Raises
    ------
    BadInput
        The file cannot be read, or names a change that there is not.
    """
    path = locations.find(PAPERS[0].tables[0]).parents[1] / "lessons.csv"
    found = []
    for row in table(path, _COLUMNS):
        if row["change"] not in _CHANGES or bool(row["change"]) == bool(row["over_suite"]):
            raise BadInput(f"{path}: {row['comparison']}: name what to compare with, or a change")
        found.append(Comparison(name=row.pop("comparison"), **row))
    return found


def sections(results: Results) -> list[dict[str, Any]]:
    """Return a section per question: its answers in words, its comparisons as a table, its suites.

    Answers of one question under one rule are corrected by Holm for their number.
    """
    return [
        _section(question, members, results)
        for question, members in grouped(comparisons(), lambda each: each.question).items()
    ]


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Return a line per question: its answers by rule."""
    rows = [[f"[{each['question']}](#{each['anchor']})", each["last"], each["best"]] for each in found]
    return markdown_of(["question", *_SHOWN], rows)


def _section(question: str, members: Sequence[Comparison], results: Results) -> dict[str, Any]:
    measured = {rule: [each.difference(results, rule) for each in members] for rule in _SHOWN}
    found = {rule: [None if _is_absent(one) else one for one in ones] for rule, ones in measured.items()}
    answers = {rule: _answers(found[rule], measured[rule]) for rule in _SHOWN}
    for rule in _SHOWN:
        said = zip(members, answers[rule], strict=True)
        answers[rule] = [_unless_constructed(answer, each.is_constructed(rule)) for each, answer in said]
    rows = []
    for place, each in enumerate(members):
        seeds = max((one.count for one in (found[rule][place] for rule in _SHOWN) if one), default=0)
        cells = [text for rule in _SHOWN for text in (signed(found[rule][place]), answers[rule][place])]
        rows.append([each.name, str(seeds), *cells])
    headings = ["comparison", "runs", *(text for rule in _SHOWN for text in (rule, "surely"))]
    suites = dict.fromkeys(suite for each in members for suite in (each.suite, each.over_suite) if suite)
    return {
        "question": question,
        "anchor": "".join(c for c in question.lower().replace(" ", "-") if c.isalnum() or c in "-_"),
        "last": in_words(answers[HEADLINE]),
        "best": in_words(answers[BY_VALIDATION]),
        "table": markdown_of(headings, rows),
        "suites": list(suites),
    }


def _unless_constructed(answer: str, constructed: bool) -> str:
    """Return the answer of a test, or that there is nothing to test."""
    return BY_CONSTRUCTION if constructed and answer in (BETTER, WORSE, ALIKE) else answer


def _is_absent(one: Estimate | None) -> bool:
    """Return whether the runs are there and their score is not."""
    return one is not None and math.isnan(one.mean)


def _answers(found: Sequence[Estimate | None], measured: Sequence[Estimate | None]) -> list[str]:
    """Return what the comparisons of a question say under one rule: two-sided tests of no difference."""
    return [
        NO_CHOICE if _is_absent(raw) else _answer(one, p_value)
        for one, raw, p_value in zip(found, measured, corrected(found), strict=True)
    ]


def _answer(one: Estimate | None, p_value: float) -> str:
    """Return what a comparison says."""
    if one is None:
        return NOT_RUN
    if one.count < FEWEST:
        return FEW
    verdict = one.verdict(p_value=p_value)
    return verdict if verdict in (BETTER, WORSE) else ALIKE


def _change(cell: Cell, column: str, other: str) -> Estimate | None:
    """Return the difference of two columns' means over clients; None without runs."""
    return measures.difference(measures.averages(cell, column), measures.averages(cell, other))


def in_words(answers: Sequence[str]) -> str:
    """Return what the answers say together: yes, no, both, or nothing."""
    counts = Counter(answers)
    better, worse = counts[BETTER], counts[WORSE]
    asked = better + worse + counts[ALIKE]
    if counts[BY_CONSTRUCTION]:
        return "never lower: it is a maximum; the table has the sizes"
    if not asked:
        return "there is none" if counts[NO_CHOICE] else "too few runs"
    if not better and not worse:
        return f"no difference shown, {asked} of {asked}"
    said = [f"**better** in {better}" * bool(better), f"**worse** in {worse}" * bool(worse)]
    return f"{', '.join(filter(None, said))} of {asked}"
