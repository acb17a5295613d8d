"""Published scores of clusters beside ours, as Markdown: mean, spread and range over repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedmpi.analysis.reproduction.cells import HEADLINE, Compared
from fedmpi.analysis.reproduction.judgement import CONFIRMED, REFUTED
from fedmpi.analysis.reproduction.published import CLUSTERING
from fedmpi.analysis.reproduction.tables import markdown, number, signed

_HEADINGS = ("column", "method", "paper", "repetitions", "mean", "std", "range", "ours - paper", "holds?")


def in_short(found: Sequence[Compared]) -> str:
    """Return what became of the published scores, a line per metric."""
    lines = []
    for metric in CLUSTERING:
        answers = [each.judged[HEADLINE].corrected for each in found if each.published.metric == metric]
        confirmed, refuted, nothing = (answers.count(word) for word in (CONFIRMED, REFUTED, "open"))
        undecided = len(answers) - confirmed - refuted - nothing
        lines.append(
            f"- Of {len(answers)} published figures of {metric}: {refuted} refuted, {confirmed} confirmed, "
            f"{undecided} undecided, {nothing} open."
        )
    return "\n".join(lines) + "\n"


def table(found: Sequence[Compared], name: str) -> dict[str, Any]:
    """Return a published table's name and suite, and its figures by metric."""
    members = [each for each in found if each.published.table == name]
    metrics = [
        {
            "metric": metric,
            "figures": markdown(
                _HEADINGS, [_row(each) for each in members if each.published.metric == metric]
            ),
        }
        for metric in CLUSTERING
    ]
    return {"name": name, "suite": members[0].published.suite, "metrics": metrics}


def _row(each: Compared) -> list[str]:
    published, ours = each.published, each.ours[HEADLINE]
    printed = published.printed if published.spread is None else f"{published.printed} (±{published.spread})"
    spread, extent = "-", "-"
    if ours is not None:
        values = each.cell.values(CLUSTERING[published.metric])
        extent = f"{values.min():.4f} to {values.max():.4f}"
        spread = f"{ours.std:.4f}" if ours.freedom else "-"
    place = [published.column, published.row, printed, str(len(each.cell.runs))]
    difference = signed(each.differences[HEADLINE])
    return [*place, number(ours), spread, extent, difference, str(each.judged[HEADLINE])]
