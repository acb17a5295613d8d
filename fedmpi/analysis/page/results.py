"""The top of the page: algorithms by datasets, leads over the reference, and both in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.columns import score
from fedmpi.analysis.names import joined
from fedmpi.analysis.page.axes import WIDTH, Chart, Float, Scale, scale
from fedmpi.analysis.page.cells import EQUAL, SAME_SCORE, Cell, Lead, Setting, by_metric, direction
from fedmpi.analysis.page.clients import wins
from fedmpi.analysis.page.cost import costliest
from fedmpi.analysis.page.overview import ahead
from fedmpi.analysis.page.sections import Section, grid, part, table
from fedmpi.analysis.page.settings import remarks
from fedmpi.judging.estimates import LEVEL
from fedmpi.judging.ranking import ranking, ranks
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import NONE, Column, Entry, number, words

_ROW = 28.0
_LABELS, _FIGURES = 104.0, 134.0
"""Widths of what stands left and right of a forest plot."""


def results(settings: Sequence[Setting]) -> Section:
    """Return what came out: a matrix for each headline, leads with intervals, sentences."""
    parts = []
    for place, alike in enumerate(by_metric(settings)):
        metric = alike[0].metric
        caption = f"{metric.label(unit=True)} in the last round, {direction(metric)}"
        drawn = table(caption, *matrix(alike), f"matrix-{place}", "") + part("note")(_told_apart(alike))
        plots = [forest(each) for each in alike if any(lead.gap.count for lead in each.leads.values())]
        if len(alike) == 1:
            parts.append(grid([Markup("<div>{}</div>").format(drawn), *plots]))
        else:
            parts += [drawn, grid(plots)]
    parts += [part("results")(any(each.leads for each in settings)), findings(settings)]
    return Section("results", "Results", Markup("").join(parts))


def matrix(settings: Sequence[Setting]) -> tuple[list[Column[str]], list[str]]:
    """Return a column per dataset, and the rows: the labels of algorithms; of settings with one headline.

    Where several datasets have every algorithm, the last column is the average rank.
    """
    labels, table = _ranks(settings)
    columns = [Column[str]("algorithm", lambda label: words(label, "name")), *map(_of_setting, settings)]
    if len(table) > 1:
        average = dict(zip(labels, table.mean(axis=0).tolist(), strict=True))
        columns.append(Column("average rank", lambda label: number(average[label], 2), _RANK))
    return columns, labels


_RANK = "1: best; mean over the datasets that have every algorithm; ties as printed share their ranks"


def _ranks(settings: Sequence[Setting]) -> tuple[list[str], Float]:
    """Return labels, and their ranks [datasets, labels] on the datasets that have all of several."""
    whole_first = sorted(settings, key=lambda each: -len(each.cells))
    labels = list(dict.fromkeys(cell.label for each in whole_first for cell in each.cells))
    table = []
    for each in _whole(settings, labels):
        printed = {cell.label: float(each.metric.shown(cell.score().mean)) for cell in each.cells}
        table.append(ranks([each.metric.sign * printed[label] for label in labels]))
    return labels, np.array(table)


def _whole(settings: Sequence[Setting], labels: Sequence[str]) -> list[Setting]:
    return [each for each in settings if len(each.cells) == len(labels) > 1]


def _of_setting(setting: Setting) -> Column[str]:
    cells = {cell.label: cell for cell in setting.cells}
    most = max(len(cell.runs) for cell in setting.cells)
    best = {cell.label for cell in ahead(setting)} if len(cells) > 1 else set()

    def entry(label: str) -> Entry:
        if label not in cells:
            return words(NONE)
        lead = setting.lead(cells[label])
        verdict = lead.verdict if lead is not None and lead.verdict in ("better", "worse") else ""
        shown, seeds = score(setting.metric, cells[label].score()), len(cells[label].runs)
        some = f" ({seeds} of {most} seeds)" if seeds < most else ""
        return replace(shown, text=shown.text + some, kind=f"{'best ' * (label in best)}{verdict}".strip())

    return Column(setting.heading, entry)


def _told_apart(settings: Sequence[Setting]) -> str:
    """Say which average ranks are told apart, where there are enough of them."""
    labels, table = _ranks(settings)
    if len(table) < 2 or len(labels) < 3:
        return ""
    if len({each.cells[0].dataset for each in _whole(settings, labels)}) < len(table):
        return "Average ranks are not tested: settings of one dataset are no independent datasets."
    found = ranking(table)
    return (
        f"Average ranks that differ by less than {found.critical_difference:.2f} are not told apart "
        f"(Nemenyi's critical difference at {LEVEL:.0%}, {found.datasets} datasets, {len(labels)} "
        f"algorithms). That all algorithms are alike has p = {found.p:.2g} (Friedman's test)."
    )


def forest(setting: Setting) -> Markup:
    """Return the leads of a setting's cells with their intervals: filled where decided, hollow where not."""
    found = [(cell, lead) for cell, lead in setting.leads.items() if lead.gap.count]
    unit, over = setting.metric.points.strip() or setting.metric.title, _over([lead for _, lead in found])
    title, bottom = f"{setting.heading}: lead over {over}", 8.0 + _ROW * len(found)
    chart = Chart(title, _LABELS, WIDTH - _FIGURES, bottom=bottom)
    ends = [setting.metric.scale * end for _, lead in found for end in lead.reach]
    x = scale([0.0, *ends], chart.left, chart.right)
    chart.grid(x, None, f"lead ({unit})")
    chart.path("zero", f"M{float(x(0)):.1f} {chart.top}V{chart.bottom}")
    for place, (cell, lead) in enumerate(found):
        with chart.series(cell.label):
            _row(chart, cell, lead, x, chart.top + (place + 0.5) * _ROW)
    return chart.figure(f"{chart.title}, {unit}, with intervals, {len(found)} algorithms")


def _row(chart: Chart, cell: Cell, lead: Lead, x: Scale, y: float) -> None:
    places = np.sort([*lead.reach, lead.gap.mean])
    low, middle, high = x(cell.metric.scale * places).tolist()
    decided = "dot" if lead.verdict in ("better", "worse") else "ring"
    figure, label = lead.figure(cell.metric), cell.label
    chart.text(_LABELS - 6, y + 3.5, label if len(label) <= 19 else f"{label[:17]}…", "tick end")
    chart.path(f"line c{cell.colour}", f"M{low:.1f} {y:.1f}H{high:.1f}")
    chart.dot(f"{decided} c{cell.colour}", middle, y, f"{label}: {figure}, {lead.verdict}", 4.2)
    chart.text(WIDTH - _FIGURES + 8, y - 1, figure, "tick")
    chart.text(WIDTH - _FIGURES + 8, y + 9.5, lead.verdict, f"small {lead.verdict.split()[0]}")


def _over(leads: Iterable[Lead]) -> str:
    return ", ".join(dict.fromkeys(lead.over.label for lead in leads))


def findings(settings: Sequence[Setting]) -> Markup:
    """Return a line per setting."""
    said = []
    for each in settings:
        runs = [run for cell in each.cells for run in cell.runs.values()]
        counts = sorted({len(run.clients) for run in runs})
        number = f", {' or '.join(map(str, counts))} client{'s' * (counts[-1] > 1)}"
        notes = [f"{text}." for text in remarks((run.config, run.provenance) for run in runs)]
        where = f"Best by client: {wins(each)}." if _has_wins(each) else ""
        sentences = (_ahead(each), _leads(each), where, _cost(each), *notes)
        said.append((each.heading.removesuffix(number) + number, sentences))
    return part("findings")(said)


def _has_wins(each: Setting) -> bool:
    redrawn = any(run.redrawn for cell in each.cells for run in cell.runs.values())
    return not redrawn and each.metric.scope == "client" and min(len(each.cells), len(each.clients)) > 1


def _ahead(each: Setting) -> str:
    """Say which cell leads, or which tie, and how the leader stands against the reference."""
    first, metric = ahead(each), each.metric
    if not first:
        return ""
    names = Markup(joined([Markup("<strong>{}</strong>").format(cell.label) for cell in first]))
    own, lead = first[0].score(), each.lead(first[0])
    figure = _figure(metric, own.mean, own.half)
    if len(first) > 1:
        text = f" tie for the best {metric.label()} in the last round, {_figure(metric, own.mean)}"
    elif len(each.cells) == 1:
        text = f" has a {metric.label()} of {figure} in the last round"
    else:
        text = f" has the best {metric.label()} in the last round, {figure}"
        if lead is not None and lead.gap.count and lead.verdict != SAME_SCORE:
            text += f", {lead.figure(metric)}{metric.points} against {lead.over.label}: {lead.verdict}"
    return names + text + "." + _constant(each, first[0])


_VERDICTS = {
    "better": "better",
    "worse": "worse",
    "undecided": "undecided",
    "one pair only": "one seed, so undecided",
    "two pairs only": "two seeds, so undecided",
    "no spread": "the same difference in every seed, so undecided",
    "no pair": "no seed in common",
    SAME_SCORE: "the same score in the last round",
}


def _leads(each: Setting) -> str:
    """Say how each cell stands against the reference; of those equal to it why, where the runs tell it."""
    over = _over(each.leads.values())
    found = grouped(each.leads, lambda cell: each.leads[cell].verdict)
    labels = {verdict: ", ".join(cell.label for cell in cells) for verdict, cells in found.items()}
    groups = [f"{said}: {labels[verdict]}" for verdict, said in _VERDICTS.items() if verdict in found]
    sentences = [f"Against {over} {'; '.join(groups)}."] if groups else []
    equal = found.get(EQUAL, [])
    of_fedavg = [cell for cell in equal if each.leads[cell].over.algorithm == "fedavg"]
    whole = [cell.label for cell in of_fedavg if cell.never_split]
    others = [cell.label for cell in equal if cell.label not in whole]
    level = []
    if others:
        level.append(f"{joined(others)} equal{'s' * (len(others) == 1)} {over} in every round and seed")
    if whole:
        they = "it equals" if len(whole) == 1 else "they equal"
        level.append(f"{joined(whole)} never split, so {they} {over}")
    return " ".join(sentences + [f"No difference: {'; '.join(level)}."] * bool(level))


def _figure(metric: Metric, value: float, half: float = math.nan) -> str:
    unit, spread = " %" if metric.percent else "", "" if math.isnan(half) else f" ± {metric.shown(half)}"
    return f"{metric.shown(value)}{spread}{unit}" + ("" if metric.higher else f" ({direction(metric)})")


def _constant(each: Setting, first: Cell) -> str:
    """Say what a constant prediction scores, and which cells are not above it."""
    metric, value = each.metric, first.mean("constant")
    if math.isnan(value):
        return ""
    of = " of a client" if metric.scope == "client" else ""
    low = [cell.label for cell in each.cells if metric.sign * (cell.score().mean - value) <= 0]
    said = f" {joined(low)} {'is' if len(low) == 1 else 'are'} not better than that." if low else ""
    return f" The same prediction for every example{of} would score {_figure(metric, value)}.{said}"


def _cost(each: Setting) -> str:
    """Say which phase takes most for most cells, and for which another does."""
    found = grouped(each.cells, lambda cell: costliest(cell)[0])
    first, *others = sorted(found, key=lambda name: -len(found[name]))
    strong = Markup("<strong>{}</strong> ({})")
    text = Markup("Most of the time goes into ") + strong.format(first, _span(found[first]))
    for name in others:
        labels = " and ".join(cell.label for cell in found[name])
        text += f", but for {labels} into " + strong.format(name, _span(found[name]))
    return text + "."


def _span(cells: Sequence[Cell]) -> str:
    low, high = (f"{end(costliest(cell)[1] for cell in cells):.0%}" for end in (min, max))
    return high if low == high else f"{low} to {high}"
