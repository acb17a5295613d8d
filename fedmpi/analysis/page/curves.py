"""The page's section on curves: every metric of the runs and their losses, by round, traffic or time."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.options import flat
from fedmpi.analysis.page.axes import thinned
from fedmpi.analysis.page.cells import Cell, Setting, direction
from fedmpi.analysis.page.charts import Axes, Line
from fedmpi.analysis.page.charts import lines as chart
from fedmpi.analysis.page.collect import LOSSES, Digest, Float
from fedmpi.analysis.page.sections import Section, cells_legend, grid, part, table
from fedmpi.judging.estimates import half_widths
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import Entry, listed, number, words

_PARTS = {"val": "validation"}
_MOST_COSTS = 40
_NAMED = ("algorithm.name", "algorithm", "plugin", "objective.name", "objective")
"""Settings that a curve's label says."""


def curves(settings: Sequence[Setting]) -> Section:
    """Return all metrics and losses by round, with the spread over seeds."""
    parts = [part("curves")(), cells_legend([cell for each in settings for cell in each.cells])]
    for place, each in enumerate(settings):
        drawn = [_scores(each, metric, part) for metric in each.metrics for part in reversed(metric.parts)]
        drawn += [_losses(each, field) for field in LOSSES]
        inside = grid(filter(None, drawn), "wide") + _differing(each, place)
        inside += _in_numbers(each, f"curves-{place}")
        parts.append(part("curves_of")(each.heading, json.dumps(_costs(each)), inside))
    return Section("curves", "Curves: scores and losses", Markup("").join(parts))


def _costs(each: Setting) -> dict[str, dict[str, list[float]]]:
    """Return what each cell spent up to some rounds, means over seeds: for axes of traffic and of time."""
    found = {}
    for cell in each.cells:
        kept = thinned(min(len(run.costs["seconds"]) for run in cell.runs.values()), _MOST_COSTS)
        spent = {
            unit: np.mean([run.costs[name][kept] for run in cell.runs.values()], axis=0)
            for unit, name in (("MB", "megabytes"), ("s", "seconds"))
        }
        rounded = {unit: [float(f"{value:.5g}") for value in values] for unit, values in spent.items()}
        found[cell.label] = {"round": (kept + 1).tolist(), **rounded}
    return found


def _differing(each: Setting, place: int) -> Markup:
    """Return the settings in which the curves' runs differ; nothing where the algorithm says all."""
    configs = [flat(cell.config) for cell in each.cells]
    names = dict.fromkeys(name for config in configs for name in sorted(config) if name not in _NAMED)
    differing = [name for name in names if len({str(config.get(name)) for config in configs}) > 1]
    if not differing:
        return Markup("")
    rows = [[words(name), *(words(config.get(name, "")) for config in configs)] for name in differing]
    columns = listed(["setting", *(cell.label for cell in each.cells)])
    return table("Settings in which they differ", columns, rows, f"differ-{place}")


def _scores(each: Setting, metric: Metric, part: str) -> Markup | None:
    label = metric.label(_PARTS.get(part, part))
    title = label if metric.higher else f"{label}, {direction(metric)}"
    unit = f"{label} (%)" if metric.percent else label
    axes = Axes(_capitalised(title), each.heading, unit, factor=metric.scale)
    return _chart(each, metric.field(part), axes)


def _losses(each: Setting, field: str) -> Markup | None:
    drawn = [run.curves[field] for cell in _drawable(each, field) for run in cell.runs.values()]
    log = all((values[~np.isnan(values)] > 0).all() for values in drawn)
    return _chart(each, field, Axes(_capitalised(LOSSES[field]), each.heading, LOSSES[field], log=log))


def _chart(each: Setting, field: str, axes: Axes) -> Markup | None:
    """Return the chart of a field; None where there is nothing to draw."""
    cells = _drawable(each, field)
    if not cells:
        return None
    drawn = [_with_spread(cell, [run.curves[field] for run in cell.runs.values()]) for cell in cells]
    costs = _costs(each)
    spent = {unit: max(costs[cell.label][unit][-1] for cell in cells) for unit in ("MB", "s")}
    return chart(axes, drawn, spent=spent)


def _drawable(each: Setting, field: str) -> list[Cell]:
    def known(run: Digest) -> bool:
        return bool(np.isfinite(run.curves.get(field, np.nan)).any())

    return [cell for cell in each.cells if all(map(known, cell.runs.values()))]


def _with_spread(cell: Cell, runs: Sequence[Float]) -> Line:
    """Return the mean over seeds of values by round [R], with its 95 % interval if there are several."""
    values = np.array(runs)
    mean = values.mean(axis=0)
    half = half_widths(values) if len(values) > 1 else None
    band = (None, None) if half is None else (mean - half, mean + half)
    return Line(cell.label, cell.colour, cell.dash, mean, *band)


def _in_numbers(each: Setting, identifier: str) -> Markup:
    """Return the headline at about ten rounds, for those who do not see the curves."""
    metric, field = each.metric, each.metric.field()
    rows = []
    for index in thinned(max(int(cell.config["rounds"]) for cell in each.cells), 11).tolist():
        found = [[run.curves[field][index : index + 1] for run in cell.runs.values()] for cell in each.cells]
        means = [metric.scale * float(np.mean(values)) if np.size(values) else None for values in found]
        rows.append([Entry(str(index + 1), index + 1), *(number(mean, metric.digits - 1) for mean in means)])
    columns = listed(["round", *(cell.label for cell in each.cells)])
    inside = table(f"{each.heading}: {metric.label(unit=True)}, mean over seeds", columns, rows, identifier)
    return part("folded")(f"{_capitalised(metric.label())} in numbers", inside)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
