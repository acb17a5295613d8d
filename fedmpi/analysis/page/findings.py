"""What the runs say in sentences: who is ahead and by how much, on which clients, and what cost most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.page.clients import wins
from fedmpi.analysis.page.cost import costliest
from fedmpi.analysis.page.overview import ahead, direction
from fedmpi.analysis.page.settings import Cell, Setting
from fedmpi.analysis.page.templates import part
from fedmpi.metrics.metric import Metric


def findings(settings: Sequence[Setting]) -> Markup:
    """Return a line per setting."""
    said = []
    for each in settings:
        counts = sorted({len(run.clients) for cell in each.cells for run in cell.runs.values()})
        number = f", {' or '.join(map(str, counts))} client{'s' * (counts[-1] > 1)}"
        heading = f"{each.heading.removesuffix(number)}{number}"
        said.append((heading, (_ahead(each), _where(each), _cost(each))))
    return part("findings")(said)


def _ahead(each: Setting) -> Markup:
    """Say which cell leads, or which tie, and whether the gap to the next is more than the seeds' noise."""
    first, metric = ahead(each.cells), each.metric
    if not first:
        return Markup("")
    second = ahead([cell for cell in each.cells if not any(cell is leader for leader in first)])
    names = [Markup("<strong>{}</strong>").format(cell.label) for cell in first]
    figure = _figure(metric, first[0].score().mean)
    text, *more = names
    if more:
        tied = Markup(", ").join(names[:-1]) + " and " + names[-1]
        text = tied + f" tie for the best {metric.label()} in the last round, {figure}"
    elif second:
        text += f" has the best {metric.label()} in the last round, {figure}"
    else:
        text += f" has a {metric.label()} of {figure} in the last round"
    gap = f", {_gap(first[0], second[0])}" if second else ""
    return text + gap + "." + _constant(first[0])


def _figure(metric: Metric, value: float) -> str:
    unit = " %" if metric.percent else ""
    return f"{metric.shown(value)}{unit}" + ("" if metric.higher else f" ({direction(metric)})")


def _constant(cell: Cell) -> str:
    value = cell.mean("constant")
    if math.isnan(value):
        return ""
    return f" The same prediction for every example would score {_figure(cell.metric, value)}."


def _gap(first: Cell, second: Cell) -> str:
    """Say how far ahead of the second cell the first is, over the seeds that both have."""
    metric, gap = first.metric, first.lead(second)
    size = metric.shown(abs(gap.mean))
    if not gap.count:
        return f"before {second.label} (other seeds, so not paired)"
    if gap.mean == 0:
        return f"level with {second.label} over the seeds that both have"
    if gap.mean < 0:  # it leads by the mean over its own seeds
        return f"but {size}{metric.points} behind {second.label} over the seeds that both have"
    if gap.count < 2:
        return f"{size}{metric.points} ahead of {second.label} (one seed: no interval)"
    verdict = "more than" if gap.verdict() == "better" else "within"
    half = f"{metric.shown(gap.half)}{metric.points}"
    return f"{size} ± {half} ahead of {second.label}: {verdict} the noise of {gap.count} seeds"


def _where(each: Setting) -> str:
    if each.metric.scope != "client" or len(each.cells) < 2 or len(each.clients) < 2:
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
