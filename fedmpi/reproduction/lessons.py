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
from fedmpi.judging.estimates import FEWEST, Estimate, corrected
from fedmpi.judging.judgement import NOT_RUN
from fedmpi.reproduction import measures
from fedmpi.reproduction.published import AS_PUBLISHED, BY_VALIDATION, HEADLINE, PAPERS, fields_of, table
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.studies import clean
from fedmpi.reproduction.tables import page_table

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
    """One comparison of stored runs, paired by split and seed; the attributes are the columns of its file.

    Attributes
    ----------
    question, comparison : str
    suite, cases : str
        What is asked about, as ``fedmpi sweep SUITE --set ...`` takes it.
    over_suite, over_cases : str
        What it is compared with; blank where `change` says it.
    change : str
        One of ``""``, ``"as published"``, ``"without twins"``.

    Raises
    ------
    ValueError
        It names neither what to compare with nor a change, or both.
    """

    question: str
    comparison: str
    suite: str
    cases: str
    over_suite: str
    over_cases: str
    change: str

    def __post_init__(self) -> None:
        if bool(self.change) == bool(self.over_suite):
            raise ValueError(f"{self.comparison}: name what to compare with, or a change")

    def difference(self, results: Results, rule: str) -> Estimate | None:
        """Return by how much the score is higher, in its own unit; None without runs of both sides."""
        ours = other = results.one(self.suite, self.cases)
        if not self.change:
            other = results.one(self.over_suite, self.over_cases)
        columns = {"as published": RULES[AS_PUBLISHED], "without twins": clean(rule)}
        column = columns.get(self.change, RULES[rule])
        return measures.lead(ours, other, column, RULES[rule], whole_runs=True)

    def answer(self, one: Estimate | None, p_value: float, rule: str) -> str:
        """Return what a difference says under a rule: a two-sided test of none."""
        if one is None:
            return NOT_RUN
        if math.isnan(one.mean):
            return NO_CHOICE
        if one.count < FEWEST:
            return FEW
        if self.change == "as published" and rule == HEADLINE:  # the maximum includes the last round
            return BY_CONSTRUCTION
        verdict = one.verdict(p_value=p_value)
        return verdict if verdict in (BETTER, WORSE) else ALIKE


def comparisons() -> list[Comparison]:
    """Return the comparisons of ``bench/lessons.csv``.

    Raises
    ------
    BadInput
        The file cannot be read, or has a line that is no comparison.
    """
    path = locations.find(PAPERS[0].tables[0]).parents[1] / "lessons.csv"
    return table(path, Comparison, fields_of(Comparison), change=_CHANGES)


def sections(results: Results) -> list[dict[str, Any]]:
    """Return a section per question: its answers in words, its comparisons as a table, its suites.

    Answers of one question under one rule are corrected by Holm for their number.
    """
    questions = grouped(comparisons(), lambda each: each.question)
    return [_section(question, members, results) for question, members in questions.items()]


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Return a line per question: its answers by rule."""
    rows = [[f"[{each['question']}](#{each['anchor']})", each["last"], each["best"]] for each in found]
    return page_table(["question", *_SHOWN], rows)


def _section(question: str, members: Sequence[Comparison], results: Results) -> dict[str, Any]:
    said, figures = {}, {}
    for rule in _SHOWN:
        figures[rule] = found = [each.difference(results, rule) for each in members]
        judged = zip(members, found, corrected(found), strict=True)
        said[rule] = [each.answer(one, p_value, rule) for each, one, p_value in judged]
    rows = []
    for place, each in enumerate(members):
        runs = max(one.count if one else 0 for one in (figures[rule][place] for rule in _SHOWN))
        cells = [value for rule in _SHOWN for value in (figures[rule][place], said[rule][place])]
        rows.append([each.comparison, runs, *cells])
    headings = ["comparison", "runs", *(text for rule in _SHOWN for text in (rule, "surely"))]
    suites = dict.fromkeys(suite for each in members for suite in (each.suite, each.over_suite) if suite)
    return {
        "question": question,
        "anchor": "".join(c for c in question.lower().replace(" ", "-") if c.isalnum() or c in "-_"),
        "last": in_words(said[HEADLINE]),
        "best": in_words(said[BY_VALIDATION]),
        "table": page_table(headings, rows),
        "suites": list(suites),
    }


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
