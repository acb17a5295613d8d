"""The results in sentences: who leads, what is decided, who is best on which clients, what cost most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.page.cells import EQUAL, SAME_SCORE, Cell, Setting, direction
from fedmpi.analysis.page.clients import wins
from fedmpi.analysis.page.cost import costliest
from fedmpi.analysis.page.leads import figure_of
from fedmpi.analysis.page.overview import ahead
from fedmpi.analysis.page.templates import part
from fedmpi.analysis.remarks import never_split, remarks
from fedmpi.metrics.metric import Metric


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
    if len(names) > 1:
        tied = Markup(", ").join(names[:-1]) + " and " + names[-1]
        text = tied + f" tie for the best {metric.label()} in the last round, {_figure(metric, own.mean)}"
    elif len(each.cells) == 1:
        text = (
            names[0] + f" has a {metric.label()} of {_figure(metric, own.mean, own.half)} in the last round"
        )
    else:
        figure = _figure(metric, own.mean, own.half)
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
    over = ", ".join(dict.fromkeys(lead.over.label for _, lead in each.leads))
    labels = {
        said: [cell.label for cell, lead in each.leads if lead.verdict == verdict]
        for verdict, said in _VERDICTS.items()
    }
    groups = "; ".join(f"{said}: {', '.join(found)}" for said, found in labels.items() if found)
    level = _level([(cell, lead.over) for cell, lead in each.leads if lead.verdict == EQUAL], over)
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
        said.append(
            f"{_listed(whole)} never split, so {'it equals' if len(whole) == 1 else 'they equal'} {over}"
        )
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
