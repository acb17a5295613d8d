"""Published scores over all clients' test graphs beside ours, as Markdown, under every selection rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedmpi.analysis.reproduction.cells import AS_PUBLISHED, Compared
from fedmpi.analysis.reproduction.judgement import CONFIRMED, REFUTED
from fedmpi.analysis.reproduction.tables import markdown, number, signed
from fedmpi.analysis.rows import RULES

_BY_VALIDATION = "best by validation"
_HEADINGS = (
    "column",
    "method",
    "paper",
    "seeds",
    *RULES,
    "constant",
    "as published - paper",
    "reproduced?",
    f"{_BY_VALIDATION} - paper",
    "holds by validation?",
)


def in_short(found: Sequence[Compared]) -> str:
    """Return what became of the published scores, a line per question."""
    lines = []
    for rule, question in (
        (AS_PUBLISHED, "chosen on test data as published"),
        (_BY_VALIDATION, "chosen by validation"),
    ):
        answers = [each.judged[rule].corrected for each in found]
        confirmed, refuted, nothing = (answers.count(word) for word in (CONFIRMED, REFUTED, "open"))
        undecided = len(answers) - confirmed - refuted - nothing
        lines.append(
            f"- Of {len(answers)} published scores, {question}: {refuted} refuted, {confirmed} confirmed, "
            f"{undecided} undecided, {nothing} open."
        )
    return "\n".join(lines) + "\n"


def table(found: Sequence[Compared], name: str) -> dict[str, Any]:
    """Return a published table's name and suite, its scores and its notes."""
    members = [each for each in found if each.published.table == name]
    notes = [
        f"{each.published.row}, {each.published.column}: {each.published.note}."
        for each in members
        if each.published.note
    ]
    return {
        "name": name,
        "suite": members[0].published.suite,
        "metric": members[0].published.metric,
        "scores": markdown(_HEADINGS, [_row(each) for each in members]),
        "notes": notes,
    }


def _row(each: Compared) -> list[str]:
    published = each.published
    constant = "-"
    if each.cell.runs:
        constant = f"{each.cell.values('constant_score').mean():.4f}"
    place = [published.column, published.row, published.printed, str(len(each.cell.runs))]
    judged = []
    for rule in (AS_PUBLISHED, _BY_VALIDATION):
        judged += [signed(each.differences[rule]), str(each.judged[rule])]
    return [*place, *(number(each.ours[rule]) for rule in RULES), constant, *judged]
