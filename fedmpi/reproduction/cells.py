"""Published cells beside our runs of them, judged, and as a table of one row per cell and metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import Judgement, Question, judge
from fedmpi.judging.spreads import bartlett, pool
from fedmpi.reproduction import measures
from fedmpi.reproduction.published import AS_PUBLISHED, GAINS, HEADLINE, REFERENCE, Published
from fedmpi.reproduction.results import NO_CELL, Cell, Results
from fedmpi.tables.csv import csv_text
from fedmpi.tables.table import Column, Table


@dataclass(frozen=True)
class Compared:
    """A published figure beside ours.

    Attributes
    ----------
    published : Published
    cell : Cell
        Our runs of it; may be none.
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
    ours: dict[str, Estimate | None] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)
    alike: dict[str, float] = field(default_factory=dict)
    differences: dict[str, Estimate | None] = field(default_factory=dict)
    judged: dict[str, Judgement] = field(default_factory=dict)

    def question(self, rule: str) -> Question:
        """Return what is asked under a rule: whether the difference is within the margin."""
        margin = self.published.margin
        return Question(self.differences[rule], -margin, margin, self.published.unpublished)


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
            for each, answer in zip(members, judge([one.question(rule) for one in members]), strict=True):
                each.judged[rule] = answer
    return found


def _column(published: Published) -> tuple[str, str, str]:
    return published.paper, published.place, published.column


def _measured(published: Published, reference: Published | None, results: Results) -> Compared:
    cell = results.one(published.suite, published.cases) if published.suite else NO_CELL
    found = Compared(published, cell)
    for rule, column in RULES.items():
        if published.metric not in GAINS:
            found.ours[rule] = measures.average(cell, measures.column(cell, published.metric, rule))
            continue
        if reference is None:
            raise BadInput(f"{published.table}, {published.column}: gains need a row {REFERENCE}")
        gains = measures.gains(cell, results.one(reference.suite, reference.cases), column)
        found.ours[rule] = None
        if gains is not None:
            found.ours[rule] = gains.least if published.metric == "min gain" else gains.improved
            found.client[rule] = gains.client
    return found


def _subtract(members: Sequence[Compared], rule: str) -> None:
    """Set the differences of a column's methods to the published figures, and whether they deviate alike.

    Smallest gains and ratios are no means: each keeps the error of its own bootstrap.
    """
    ours, alike = [each.ours[rule] for each in members], math.nan
    if members[0].published.metric not in GAINS:
        ours, alike = pool(ours), bartlett(ours)
    for each, one in zip(members, ours, strict=True):
        printed = each.published
        each.alike[rule] = alike
        each.differences[rule] = (
            None if one is None else one.against(printed.number, printed.seeds, printed.deviation)
        )


def as_csv(found: Sequence[Compared]) -> str:
    """Return the table, one row per published cell and metric."""
    return csv_text(Table(_COLUMNS, found))


def _paper_mean(each: Compared) -> str:
    published = each.published
    return published.value if math.isnan(published.number) else f"{published.number:.4f}"


def _verdict(rule: str, each: Compared) -> str:
    return each.judged[rule].corrected


def _under(rule: str, show: Callable[[Estimate], object]) -> Callable[[Compared], object]:
    """Return what shows our figure under a rule; nothing where there are no runs."""

    def shown(each: Compared) -> object:
        ours = each.ours[rule]
        return None if ours is None else show(ours)

    return shown


def _note(each: Compared) -> str:
    notes = [each.published.note] if each.published.note else []
    if each.published.lacks:
        notes.insert(0, f"not run: lacks {each.published.lacks}")
    elif lacking := len(each.cell.missing):
        notes.insert(0, f"{lacking} of {lacking + len(each.cell.runs)} cases not run")
    return "; ".join(notes)


_PLACE = ("paper", "table", "reading", "row", "column", "metric")

_COLUMNS: tuple[Column[Compared], ...] = (
    *(Column(name, attrgetter(f"published.{name}")) for name in _PLACE),
    Column("paper_mean", _paper_mean),
    Column(
        "paper_spread", lambda each: None if each.published.spread is None else f"{each.published.spread:.3f}"
    ),
    Column("ours_mean", _under(HEADLINE, lambda ours: f"{ours.mean:.4f}")),
    Column("ours_std", _under(HEADLINE, lambda ours: f"{ours.std:.4f}" if ours.freedom else None)),
    Column("ours_n", _under(HEADLINE, lambda ours: ours.count)),
    Column("selection", _under(HEADLINE, lambda _: HEADLINE)),
    Column("as_published_mean", _under(AS_PUBLISHED, lambda ours: f"{ours.mean:.4f}")),
    *(Column(f"verdict_{rule.replace(' ', '_')}", partial(_verdict, rule)) for rule in RULES),
    Column("command", attrgetter("published.command")),
    Column("note", _note),
)
