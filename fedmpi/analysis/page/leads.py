"""Leads over the reference algorithm: columns of tables, JSON values, and the page's forest plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fedmpi.analysis.columns import score
from fedmpi.analysis.page.axes import WIDTH, Box, Scale, group, panel, scale, text
from fedmpi.analysis.page.cells import Cell, Lead, Line, Setting, lines
from fedmpi.analysis.page.sections import part
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import NONE, Column, Entry, words

_VERDICT = (
    "better or worse: p < 0.05 after Holm over the dataset's leads; equal: the same models and scores in "
    "every round"
)

_ROW = 28.0
_LABELS, _FIGURES = 104.0, 134.0
"""Widths of what stands left and right of a forest plot."""


def columns(settings: Sequence[Setting]) -> list[Column[Line]]:
    """Return the columns of leads, none where nothing can lead."""
    over = {lead.over.label.partition(", ")[0] for each in settings for lead in each.leads.values()}

    def entry(line: Line) -> Entry:
        ahead = line[0].lead(line[1])
        return score(line[1].metric, None if ahead is None else ahead.gap, sign="+")

    def verdict(line: Line) -> Entry:
        ahead = line[0].lead(line[1])
        alone = NONE if len(line[0].cells) == 1 else "reference"
        return words(alone if ahead is None else ahead.verdict)

    title = f"lead over {over.pop() if len(over) == 1 else 'the reference'}"
    meaning = f"{settings[0].metric.points} by which it is better, over the seeds that both have"
    listed = [
        Column(title, entry, f"{meaning.strip()}, ± 95 % interval of the differences by seed", pasted=True),
        Column("verdict", verdict, _VERDICT, pasted=True),
    ]
    return listed if any(each.leads for each in settings) else []


def records(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Return the headline's mean over seeds and its lead as JSON values, per dataset and algorithm."""
    return [_record(*line) for line in lines(settings)]


def _record(setting: Setting, cell: Cell) -> dict[str, Any]:
    own, ahead = cell.score(), setting.lead(cell)
    return {
        "dataset": setting.heading,
        "algorithm": cell.label,
        "rounds": cell.config["rounds"],
        "seeds": list(cell.runs),
        "metric": cell.metric.name,
        "better": cell.metric.better,
        cell.metric.field(): own.mean,
        "half": own.half,
        "reference": None if ahead is None else ahead.over.label,
        "lead": math.nan if ahead is None else ahead.gap.mean,
        "lead_half": math.nan if ahead is None else ahead.gap.half,
        "pairs": 0 if ahead is None else ahead.gap.count,
        "p_value": math.nan if ahead is None else ahead.p_value,
        "verdict": None if ahead is None else ahead.verdict,
    }


def forest(setting: Setting) -> Markup:
    """Return the leads of a setting's cells with their intervals: filled where decided, hollow where not."""
    found = [(cell, lead) for cell, lead in setting.leads.items() if lead.gap.count]
    factor, unit = setting.metric.scale, setting.metric.points.strip() or setting.metric.title
    bottom = 8.0 + _ROW * len(found)
    box = Box(left=_LABELS, right=WIDTH - _FIGURES, bottom=bottom, height=bottom + 34.0)
    ends = [factor * end for _, lead in found for end in _reach(lead)]
    x = scale([0.0, *ends], box.left, box.right)
    parts = [box.grid(x, None, f"lead ({unit})")]
    parts.append(Markup(f'<path class="zero" d="M{float(x(0)):.1f} {box.top}V{box.bottom}"/>'))
    for place, (cell, lead) in enumerate(found):
        parts.append(group(cell.label, *_row(cell, lead, x, box.top + (place + 0.5) * _ROW)))
    over = ", ".join(dict.fromkeys(lead.over.label for _, lead in found))
    title = f"{setting.heading}: lead over {over}"
    return panel(title, parts, box.height, f"{title}, {unit}, with intervals, {len(found)} algorithms")


def _reach(lead: Lead) -> tuple[float, float]:
    half = 0.0 if math.isnan(lead.gap.half) else lead.gap.half
    return lead.gap.mean - half, lead.gap.mean + half


def _row(cell: Cell, lead: Lead, x: Scale, y: float) -> list[str]:
    metric = cell.metric
    low, middle, high = (
        float(x(metric.scale * value)) for value in (_reach(lead)[0], lead.gap.mean, _reach(lead)[1])
    )
    decided = "dot" if lead.verdict in ("better", "worse") else "ring"
    figure = figure_of(metric, lead)
    return [
        text(_LABELS - 6, y + 3.5, _shortened(cell.label), "tick end"),
        f'<path class="line c{cell.colour}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>',
        part("dot")(f"{decided} c{cell.colour}", middle, y, f"{cell.label}: {figure}, {lead.verdict}", 4.2),
        text(WIDTH - _FIGURES + 8, y - 1, figure, "tick"),
        text(WIDTH - _FIGURES + 8, y + 9.5, lead.verdict, f"small {lead.verdict.split()[0]}"),
    ]


def figure_of(metric: Metric, lead: Lead) -> str:
    """Return a lead as people read it, with half the width of its interval where it has one."""
    return score(metric, lead.gap, sign="+").text


def _shortened(label: str) -> str:
    return label if len(label) <= 19 else f"{label[:17]}…"
