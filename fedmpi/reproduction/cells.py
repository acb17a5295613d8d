"""Published cells beside our runs of them, judged, and as a table of one row per cell and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import Judgement, Question, judge
from fedmpi.judging.spreads import bartlett, pool
from fedmpi.reproduction import measures
from fedmpi.reproduction.published import GAINS, REFERENCE, Published
from fedmpi.reproduction.results import NO_CELL, Cell, Repetition, Results
from fedmpi.tables.csv import csv_text
from fedmpi.tables.table import Table, listed

MARGIN = 0.02
"""Accuracies that differ by less are the same; ratios, if by less than a client (docs/reproduction)."""

RELATIVE_MARGIN = 0.05
"""Errors that differ by less, relative to the published one, are the same."""

HEADLINE, BY_VALIDATION, AS_PUBLISHED = RULES
COLUMNS = (
    *("paper", "table", "reading", "row", "column", "metric", "paper_mean", "paper_spread"),
    *("ours_mean", "ours_std", "ours_n", "selection", "as_published_mean"),
    *(f"verdict_{rule.replace(' ', '_')}" for rule in RULES),
    "command",
    "note",
)


@dataclass(frozen=True)
class Compared:
    """A published figure beside ours.

    Attributes
    ----------
    published : Published
    cell : Cell
        Our runs of it; may be none.
    missing : list of Repetition
        Of the suite, not there.
    ours : dict
        By selection rule; None where there are no runs.
    client : dict
        By selection rule: whose gain is the smallest, for that metric.
    alike : dict
        By selection rule: Bartlett's p-value of the methods of the table's column deviating alike; NaN
        where the figure is no mean or fewer than two have a spread.
    differences : dict
        By selection rule: ours minus the published figure. Its error is the method's own, or, unless
        the test objects, the one that the methods of the column have together.
    judged : dict
        By selection rule: is ours the published figure, but for the margin?
    """

    published: Published
    cell: Cell
    missing: list[Repetition]
    ours: dict[str, Estimate | None]
    client: dict[str, str]
    alike: dict[str, float]
    differences: dict[str, Estimate | None]
    judged: dict[str, Judgement]


def compare(figures: Sequence[Published], results: Results) -> list[Compared]:
    """Return every published figure beside ours.

    Judged are, each as a family, the figures of one table, one metric and one rule.

    Raises
    ------
    BadInput
        A suite lacks the cases of a figure, or a table with gains lacks self-train.
    """
    references = {_column(each): each for each in figures if each.row == REFERENCE}
    found = [_measured(each, references.get(_column(each)), results) for each in figures]
    methods = grouped(found, lambda each: (*_column(each.published), each.published.metric))
    families = grouped(
        found, lambda each: (each.published.paper, each.published.place, each.published.metric)
    )
    for rule in RULES:
        for members in methods.values():
            _subtract(members, rule)
        for members in families.values():
            answers = judge([_question(each, rule) for each in members])
            for each, answer in zip(members, answers, strict=True):
                each.judged[rule] = answer
    return found


def as_csv(found: Sequence[Compared]) -> str:
    """Return the table, one row per published cell and metric."""
    return csv_text(Table(listed(COLUMNS), [_row(each) for each in found]))


def _column(published: Published) -> tuple[str, str, str]:
    return published.paper, published.place, published.column


def _measured(published: Published, reference: Published | None, results: Results) -> Compared:
    cell, missing = results.one(published.suite, published.cases) if published.suite else (NO_CELL, [])
    ours: dict[str, Estimate | None] = {}
    client: dict[str, str] = {}
    for rule, column in RULES.items():
        if published.metric not in GAINS:
            ours[rule] = measures.average(cell, measures.column(cell, published.metric, rule))
            continue
        if reference is None:
            raise BadInput(f"{published.table}, {published.column}: gains need a row {REFERENCE}")
        alone, _ = results.one(reference.suite, reference.cases)
        gains = measures.gains(cell, alone, column)
        ours[rule] = None
        if gains is not None:
            ours[rule] = gains.least if published.metric == "min gain" else gains.improved
            client[rule] = gains.client
    return Compared(published, cell, missing, ours, client, {}, {}, {})


def _subtract(members: Sequence[Compared], rule: str) -> None:
    """Set the differences of a column's methods to the published figures, and whether they deviate alike.

    Smallest gains and ratios are no means: each keeps the error of its own bootstrap.
    """
    ours, alike = [each.ours[rule] for each in members], math.nan
    if members[0].published.metric not in GAINS:
        ours, alike = pool(ours), bartlett(ours)
    for each, estimate in zip(members, ours, strict=True):
        published = each.published
        difference = None
        if estimate is not None:
            difference = estimate.against(published.value, published.seeds, published.deviation)
        each.alike[rule], each.differences[rule] = alike, difference


def _question(each: Compared, rule: str) -> Question:
    clients = each.published.clients
    margin = MARGIN if clients is None else 1 / clients
    scored = each.published.score
    if scored is not None and not scored.bounded:
        margin = RELATIVE_MARGIN * each.published.value
    return Question(each.differences[rule], -margin, margin, each.published.unpublished)


def _row(each: Compared) -> list[str]:
    published = each.published
    ours, maximum = each.ours[HEADLINE], each.ours[AS_PUBLISHED]
    notes = [published.note] if published.note else []
    if published.lacks:
        notes.insert(0, f"not run: lacks {published.lacks}")
    elif each.missing:
        notes.insert(0, f"{len(each.missing)} of {len(each.missing) + len(each.cell.runs)} cases not run")
    row = [published.paper, published.table, published.reading]
    row += [published.row, published.column, published.metric]
    row += [
        published.printed if math.isnan(published.value) else f"{published.value:.4f}",
        "" if published.spread is None else f"{published.spread:.3f}",
    ]
    if ours is None or maximum is None:
        row += [""] * 5
    else:
        std = f"{ours.std:.4f}" if ours.freedom else ""
        row += [f"{ours.mean:.4f}", std, str(ours.count), HEADLINE, f"{maximum.mean:.4f}"]
    row += [each.judged[rule].corrected for rule in RULES]
    return [*row, published.command, "; ".join(notes)]
