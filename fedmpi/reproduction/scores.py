"""Published scores over all clients' test graphs beside ours, as Markdown, under every selection rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedmpi.analysis.rows import RULES
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, Compared
from fedmpi.reproduction.tables import (
    answered,
    by_rule,
    judged_headings,
    markdown,
    notes,
    row,
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
        what = f"Of {len(members)} published scores that can be computed here, {question}"
        lines.append(f"- {what}: {answered(members, rule)}.")
    return "\n".join(lines) + "\n"


def table(found: Sequence[Compared], name: str) -> dict[str, Any]:
    """Return a published table's name and suite, its scores and its notes."""
    members = [each for each in found if each.published.place == name and not each.published.lacks]
    return {
        "name": name,
        "suite": members[0].published.suite,
        "metric": members[0].published.metric,
        "scores": markdown(_HEADINGS, [_row(each) for each in members]),
        "spreads": spread_text(members, _JUDGED),
        "notes": notes(members),
    }


def _row(each: Compared) -> list[str]:
    constant = f"{each.cell.values('constant_score').mean():.4f}" if each.cell.runs else "-"
    return row(each, [*by_rule(each), constant], _JUDGED)
