"""The top of the page: algorithms by datasets, leads over the reference, and both in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.columns import score
from fedmpi.analysis.page.cells import EQUAL, SAME_SCORE, Cell, Setting, by_metric, direction
from fedmpi.analysis.page.clients import wins
from fedmpi.analysis.page.cost import costliest
from fedmpi.analysis.page.leads import figure_of, forest
from fedmpi.analysis.page.overview import ahead
from fedmpi.analysis.page.sections import Section, grid, part, table
from fedmpi.analysis.remarks import never_split, remarks
from fedmpi.judging.estimates import LEVEL
from fedmpi.judging.ranking import ranking, ranks
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import NONE, Column, Entry, number, words


def results(settings: Sequence[Setting]) -> Section:
    """Return what came out: a matrix for each headline, leads with intervals, sentences."""
    parts = []
    for place, alike in enumerate(by_metric(settings)):
        metric = alike[0].metric
        caption = f"{metric.label(unit=True)} in the last round, {direction(metric)}"
        drawn = table(caption, *matrix(alike), f"matrix-{place}", "")
        drawn += part("ranking")(_told_apart(alike))
        plots = [forest(each) for each in alike if any(lead.gap.count for lead in each.leads.values())]
        if len(alike) == 1:
            parts.append(grid([Markup("<div>{}</div>").format(drawn), *plots]))
        else:
            parts += [drawn, grid(plots)]
    parts += [part("results")(any(each.leads for each in settings)), findings(settings)]
    return Section("results", "Results", Markup("").join(parts))


def matrix(settings: Sequence[Setting]) -> tuple[list[Column[str]], list[str]]:
    """Return a column per dataset, and the rows: the labels of algorithms; of settings with one headline."""
    return _columns(settings), _labels(settings)


def _labels(settings: Sequence[Setting]) -> list[str]:
    whole_first = sorted(settings, key=lambda each: -len(each.cells))
    return list(dict.fromkeys(cell.label for each in whole_first for cell in each.cells))


def _columns(settings: Sequence[Setting]) -> list[Column[str]]:
    """Return a column per dataset over rows of algorithms, and the average rank where there are several."""
    rank = Column[str]("average rank", lambda label: number(_average_rank(settings, label), 2), _RANK)
    names = Column[str]("algorithm", lambda label: words(label, "name"))
    whole = _whole(settings)
    return [names, *map(_of_setting, settings), *([rank] if len(whole) > 1 else [])]


_RANK = "1: best; mean over the datasets that have every algorithm; ties as printed share their ranks"


def _of_setting(setting: Setting) -> Column[str]:
    cells = {cell.label: cell for cell in setting.cells}
    most = max(len(cell.runs) for cell in setting.cells)
    best = {cell.label for cell in ahead(setting)} if len(cells) > 1 else set()

    def entry(label: str) -> Entry:
        if label not in cells:
            return words(NONE)
        lead = setting.lead(cells[label])
        verdict = lead.verdict if lead is not None and lead.verdict in ("better", "worse") else ""
        kinds = " ".join(filter(None, ("best" if label in best else "", verdict)))
        shown = score(setting.metric, cells[label].score())
        seeds = f" ({len(cells[label].runs)} of {most} seeds)" if len(cells[label].runs) < most else ""
        return replace(shown, text=shown.text + seeds, kind=kinds)

    return Column(setting.heading, entry)


def _whole(settings: Sequence[Setting]) -> list[Setting]:
    """Return the datasets that have every algorithm, of several."""
    return [each for each in settings if len(each.cells) == len(_labels(settings)) > 1]


def _average_rank(settings: Sequence[Setting], label: str) -> float:
    return float(np.mean([_ranks(each.cells)[label] for each in _whole(settings)]))


def _told_apart(settings: Sequence[Setting]) -> str:
    """Say which average ranks are told apart, where there are enough of them."""
    whole, labels = _whole(settings), _labels(settings)
    if len(whole) < 2 or len(labels) < 3:
        return ""
    if len({each.cells[0].dataset for each in whole}) < len(whole):
        return "Average ranks are not tested: settings of one dataset are no independent datasets."
    found = ranking(np.array([[_ranks(each.cells)[label] for label in labels] for each in whole]))
    return (
        f"Average ranks that differ by less than {found.critical_difference:.2f} are not told apart "
        f"(Nemenyi's critical difference at {LEVEL:.0%}, {found.datasets} datasets, {len(labels)} "
        f"algorithms). That all algorithms are alike has p = {found.p:.2g} (Friedman's test)."
    )


def _ranks(cells: Sequence[Cell]) -> dict[str, float]:
    """Return the rank of each cell by label, 1 for the best; ties as printed share theirs."""
    metric = cells[0].metric
    found = ranks([metric.sign * float(metric.shown(cell.score().mean)) for cell in cells])
    return dict(zip((cell.label for cell in cells), found.tolist(), strict=True))


def findings(settings: Sequence[Setting]) -> Markup:
    """Return a line per setting."""
    said = []
    for each in settings:
        counts = sorted({len(run.clients) for cell in each.cells for run in cell.runs.values()})
        number = f", {' or '.join(map(str, counts))} client{'s' * (counts[-1] > 1)}"
        heading = f"{each.heading.removesuffix(number)}{number}"
        runs = [run for cell in each.cells for run in cell.runs.values()]
        notes = [f"{text}." for text in remarks((run.config, run.provenance) for run in runs)]
        said.append((heading, (_ahead(each), _leads(each), _where(each), _cost(each), *notes)))
    return part("findings")(said)


def _ahead(each: Setting) -> Markup:
    """Say which cell leads, or which tie, and how the leader stands against the reference."""
    first, metric = ahead(each), each.metric
    if not first:
        return Markup("")
    names = [Markup("<strong>{}</strong>").format(cell.label) for cell in first]
    own, lead = first[0].score(), each.lead(first[0])
    figure = _figure(metric, own.mean, own.half)
    if len(names) > 1:
        tied = Markup(", ").join(names[:-1]) + " and " + names[-1]
        text = tied + f" tie for the best {metric.label()} in the last round, {_figure(metric, own.mean)}"
    elif len(each.cells) == 1:
        text = names[0] + f" has a {metric.label()} of {figure} in the last round"
    else:
        text = names[0] + f" has the best {metric.label()} in the last round, {figure}"
        if lead is not None and lead.gap.count and lead.verdict != SAME_SCORE:
            text += f", {figure_of(metric, lead)}{metric.points} against {lead.over.label}: {lead.verdict}"
    return text + "." + _constant(each, first[0])


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
    """Say how each cell stands against the reference, and which are equal to it."""
    over = ", ".join(dict.fromkeys(lead.over.label for lead in each.leads.values()))
    labels = {
        said: [cell.label for cell, lead in each.leads.items() if lead.verdict == verdict]
        for verdict, said in _VERDICTS.items()
    }
    groups = "; ".join(f"{said}: {', '.join(found)}" for said, found in labels.items() if found)
    level = _level([(cell, lead.over) for cell, lead in each.leads.items() if lead.verdict == EQUAL], over)
    sentences = [f"Against {over} {groups}."] if groups else []
    sentences += [f"No difference: {'; '.join(level)}."] if level else []
    return " ".join(sentences)


def _level(pairs: Sequence[tuple[Cell, Cell]], over: str) -> list[str]:
    """Say which cells equal their reference, and why where the runs tell it."""
    whole = [cell.label for cell, reference in pairs if reference.algorithm == "fedavg" and never_split(cell)]
    others = [cell.label for cell, _ in pairs if cell.label not in whole]
    said = []
    if others:
        said.append(f"{_listed(others)} equal{'s' * (len(others) == 1)} {over} in every round and seed")
    if whole:
        equal = "it equals" if len(whole) == 1 else "they equal"
        said.append(f"{_listed(whole)} never split, so {equal} {over}")
    return said


def _listed(names: Sequence[str]) -> str:
    """Return names with commas and an "and"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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
    said = f" {_listed(low)} {'is' if len(low) == 1 else 'are'} not better than that." if low else ""
    return f" The same prediction for every example{of} would score {_figure(metric, value)}.{said}"


def _where(each: Setting) -> str:
    redrawn = any(run.redrawn for cell in each.cells for run in cell.runs.values())
    if redrawn or each.metric.scope != "client" or len(each.cells) < 2 or len(each.clients) < 2:
        return ""
    return f"Best by client: {wins(each)}."


def _cost(each: Setting) -> Markup:
    """Say which phase takes most for most cells, and for which another does."""
    found = grouped(each.cells, lambda cell: costliest(cell)[0])
    first, *others = sorted(found, key=lambda name: -len(found[name]))
    text = Markup("Most of the time goes into <strong>{}</strong> ({})").format(first, _span(found[first]))
    for name in others:
        labels = " and ".join(cell.label for cell in found[name])
        text += Markup(", but for {} into <strong>{}</strong> ({})").format(labels, name, _span(found[name]))
    return text + "."


def _span(cells: Sequence[Cell]) -> str:
    low, high = (f"{end(costliest(cell)[1] for cell in cells):.0%}" for end in (min, max))
    return high if low == high else f"{low} to {high}"
