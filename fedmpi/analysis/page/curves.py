"""The page's section on curves: every metric of the runs and their losses, by round, traffic or time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.page.axes import thinned
from fedmpi.analysis.page.cells import Cell, Setting, direction
from fedmpi.analysis.page.charts import Line
from fedmpi.analysis.page.charts import lines as chart
from fedmpi.analysis.page.collect import LOSSES, Float
from fedmpi.analysis.page.sections import Section, cells_legend, grid, part, table
from fedmpi.judging.estimates import half_widths
from fedmpi.tables.table import listed, number

_MOST_COSTS = 40

Costs = dict[str, dict[str, list[float]]]
"""What each cell spent up to some rounds: for axes of traffic and of time."""


def curves(settings: Sequence[Setting]) -> Section:
    """Return all metrics and losses by round, with the spread over seeds."""
    kinds = _kinds([cell for each in settings for cell in each.cells])
    parts = [
        part("curves")(["round", *kinds]),
        cells_legend([cell for each in settings for cell in each.cells]),
    ]
    for place, each in enumerate(settings):
        costs = {cell.label: _costs(cell, kinds) for cell in each.cells}
        drawn = [*_scores(each, costs), *(_chart(each, costs, *loss) for loss in LOSSES.items())]
        inside = grid(filter(None, drawn), "wide") + _in_numbers(each, f"curves-{place}")
        parts.append(part("curves_of")(each.heading, json.dumps(costs), inside))
    return Section("curves", "Curves: scores and losses", Markup("").join(parts))


def _kinds(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the horizontal axes beside rounds, with what all runs know of: see `Digest.costs`."""
    known = {"MB": "megabytes", "s": "seconds", "virtual": "virtual"}
    runs = [run for cell in cells for run in cell.runs.values()]
    return {kind: name for kind, name in known.items() if all(name in run.costs for run in runs)}


def _costs(cell: Cell, kinds: Mapping[str, str]) -> dict[str, list[float]]:
    """Return what a cell spent up to some rounds, means over seeds."""
    kept = thinned(min(len(run.costs["seconds"]) for run in cell.runs.values()), _MOST_COSTS)
    found = {"round": (kept + 1).tolist()}
    for unit, name in kinds.items():
        spent = np.mean([run.costs[name][kept] for run in cell.runs.values()], axis=0)
        found[unit] = [float(f"{value:.5g}") for value in spent]
    return found


def _scores(each: Setting, costs: Costs) -> Iterator[Markup]:
    for metric in each.metrics:
        for name in reversed(metric.parts):
            label = metric.label("validation" if name == "val" else name)
            title = label if metric.higher else f"{label}, {direction(metric)}"
            unit = f"{label} (%)" if metric.percent else label
            yield _chart(each, costs, metric.field(name), title, unit, metric.scale)


def _chart(
    each: Setting, costs: Costs, field: str, title: str, unit: str = "", factor: float = 1.0
) -> Markup:
    """Return the chart of a field, a loss where it has no unit; nothing where there is nothing to draw."""
    values = {cell: known for cell in each.cells if (known := _values(cell, field)) is not None}
    if not values:
        return Markup("")
    log = not unit and all((known[~np.isnan(known)] > 0).all() for known in values.values())
    drawn = []
    for cell, known in values.items():
        mean = known.mean(axis=0)
        half = half_widths(known) if len(known) > 1 else None
        edges = [] if half is None else [factor * (mean - half), factor * (mean + half)]
        drawn.append(Line(cell.label, cell.colour, cell.dash, factor * mean, edges))
    kinds = [kind for kind in next(iter(costs.values())) if kind != "round"]
    spent = {kind: max(costs[cell.label][kind][-1] for cell in values) for kind in kinds}
    return chart(_capitalised(title), (each.heading, unit or title), drawn, log, spent=spent)


def _values(cell: Cell, field: str) -> Float | None:
    """Return a field by round [seeds, R], as far as all runs go; None where a run has no value of it."""
    found = [run.curves.get(field, np.zeros(0)) for run in cell.runs.values()]
    shortest = min(map(len, found))
    known = np.array([values[:shortest] for values in found])
    return known if np.isfinite(known).any(axis=1).all() else None


def _in_numbers(each: Setting, identifier: str) -> Markup:
    """Return the headline at about ten rounds, for those who do not see the curves."""
    metric, rows = each.metric, []
    known = [_values(cell, metric.field()) for cell in each.cells]
    longest = max((values.shape[1] for values in known if values is not None), default=0)
    for index in thinned(longest, 11).tolist():
        means = [
            None
            if values is None or index >= values.shape[1]
            else metric.scale * float(values[:, index].mean())
            for values in known
        ]
        rows.append([index + 1, *(number(mean, metric.digits - 1) for mean in means)])
    columns = listed(["round", *(cell.label for cell in each.cells)])
    inside = table(f"{each.heading}: {metric.label(unit=True)}, mean over seeds", columns, rows, identifier)
    return part("folded")(f"{_capitalised(metric.label())} in numbers", inside)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
