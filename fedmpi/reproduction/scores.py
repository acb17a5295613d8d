"""Published scores over all clients' test graphs beside ours, as Markdown, under every selection rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedmpi.analysis.rows import RULES
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, Compared
from fedmpi.reproduction.judgement import in_words
from fedmpi.reproduction.tables import (
    judged,
    judged_headings,
    markdown,
    number,
    refused,
    spread_text,
)

_JUDGED = (AS_PUBLISHED, BY_VALIDATION)
_HEADINGS = ("column", "method", "paper", "seeds", *RULES, "constant", *judged_headings(_JUDGED))


def in_short(found: Sequence[Compared]) -> str:
    """Return what became of the published scores that can be computed, a line per question."""
    members = [each for each in found if not each.published.lacks]
    lines = []
    for rule, question in (
        (AS_PUBLISHED, "chosen on test data as published"),
        (BY_VALIDATION, "chosen by validation"),
    ):
        answers = in_words([each.judged[rule].corrected for each in members], refused(members))
        lines.append(
            f"- Of {len(members)} published scores that can be computed here, {question}: {answers}."
        )
    return "\n".join(lines) + "\n"


def table(found: Sequence[Compared], name: str) -> dict[str, Any]:
    """Return a published table's name and suite, its scores and its notes."""
    members = [each for each in found if each.published.place == name and not each.published.lacks]
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
        "spreads": spread_text(members, _JUDGED),
        "notes": notes,
    }


def _row(each: Compared) -> list[str]:
    published = each.published
    constant = "-"
    if each.cell.runs:
        constant = f"{each.cell.values('constant_score').mean():.4f}"
    place = [published.column, published.row, published.printed, str(len(each.cell.runs))]
    return [*place, *(number(each.ours[rule]) for rule in RULES), constant, *judged(each, _JUDGED)]
