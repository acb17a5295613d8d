"""The page's section on what accuracy costs: points against bytes and time, and what a target took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.columns import score
from fedmpi.analysis.page.cells import Cell, Line, Setting, by_metric, lines
from fedmpi.analysis.page.marks import Point, Scatter, scatter
from fedmpi.analysis.page.overview import NAMES, spent
from fedmpi.analysis.page.sections import Section, cells_legend, grid, part, table
from fedmpi.analysis.page.units import JOULES, MEGABYTES, SECONDS, Unit, measured
from fedmpi.metrics import targets
from fedmpi.tables.table import NONE, Column, Entry, filled, number, words


@dataclass(frozen=True)
class Cost:
    """What a run spends.

    Attributes
    ----------
    name : str
        In a run's summary.
    units : sequence of Unit
        In which people read it.
    title, meaning : str
    curve : str
        In a run's costs by round.
    """

    name: str
    units: Sequence[Unit]
    title: str
    meaning: str
    curve: str

    def of(self, cell: Cell) -> float:
        """Return its mean over seeds."""
        return cell.mean(self.name)


TRAFFIC = Cost("client_megabytes", MEGABYTES, "traffic", "sent and received by all clients", "megabytes")
TIME = Cost("total_seconds", SECONDS, "time", "all rounds", "seconds")
ENERGY = Cost("joules", JOULES, "energy", "processors, memory and GPUs of all nodes", "joules")
"""Of runs with counters."""


def tradeoff(settings: Sequence[Setting], target: float | None) -> Section:
    """Return score against each cost, and a table of costs with those of reaching a target.

    Parameters
    ----------
    target : float or None
        Value of the headline on validation data; None: what the reference has in the last round.
    """
    charts = [
        _chart(each, cost)
        for each in settings
        for cost in (TRAFFIC, TIME)
        if len(each.cells) > 1 and any(cost.of(cell) > 0 for cell in each.cells)
    ]
    drawn = [cell for each in settings if len(each.cells) > 1 for cell in each.cells]
    parts = [part("tradeoff")(target is None, bool(charts))]
    parts += [cells_legend(drawn), grid(charts, "wide")] if charts else []
    for place, alike in enumerate(by_metric(settings)):
        parts.append(
            table("Costs, means over seeds", _columns(alike, target), lines(alike), f"costs-{place}", "")
        )
    return Section("tradeoff", "Score against cost", Markup("").join(parts))


def _chart(setting: Setting, cost: Cost) -> Markup:
    metric, on_front = setting.metric, front(setting.cells, cost)
    points = []
    for cell in setting.cells:
        place, outlined = (cost.of(cell), metric.scale * cell.score().mean), cell in on_front
        points.append(Point(cell.label, cell.colour, *place, _interval(cell), outlined))
    title = f"{setting.heading}: {metric.label()} against {cost.title}"
    return scatter(Scatter(title, cost.meaning, metric.label(unit=True), cost.units), points)


def _interval(cell: Cell) -> tuple[float, float]:
    """Return the ends of a cell's interval as people read them, within what the metric can be."""
    metric, own = cell.metric, cell.score()
    half = 0.0 if math.isnan(own.half) else own.half
    return metric.scale * max(own.mean - half, metric.low), metric.scale * min(own.mean + half, metric.high)


def front(cells: Sequence[Cell], cost: Cost) -> list[Cell]:
    """Return the cells that no other beats: none scores as well for less, or better for as much."""
    found = [(cost.of(cell), cell.metric.sign * cell.score().mean, cell) for cell in cells]
    return [
        cell
        for spent, gained, cell in found
        if not math.isnan(spent + gained)
        and not any(
            other <= spent and better >= gained and (other, better) != (spent, gained)
            for other, better, _ in found
        )
    ]


def _columns(settings: Sequence[Setting], target: float | None) -> list[Column[Line]]:
    metric, runs = settings[0].metric, [run for _, cell in lines(settings) for run in cell.runs.values()]
    counted = any("joules" in run.summary for run in runs)
    return [
        *NAMES,
        Column(f"{metric.label(unit=True)}, last round", lambda line: score(metric, line[1].score())),
        Column("seeds", lambda line: number(len(line[1].runs), 0)),
        Column("rounds", lambda line: number(line[1].config["rounds"], 0)),
        spent("time", "total_seconds", SECONDS, "all rounds"),
        spent("a round", "round_seconds_median", SECONDS, "median over rounds"),
        spent("traffic", "client_megabytes", MEGABYTES, "payload sent and received by all clients"),
        Column("model GFLOP", lambda line: number(line[1].mean("model_gflop"), 0)),
        *filled([Column("on a front", _fronts, "of score against traffic, against time")], lines(settings)),
        Column(
            f"target, val {metric.heading}",
            lambda line: number(metric.scale * target_of(line[0], target), metric.digits),
        ),
        Column("rounds to it", lambda line: _to_target(line, target, None), "mean over seeds"),
        *(_cost_to(target, cost) for cost in (TIME, TRAFFIC, *[ENERGY] * counted)),
    ]


def _cost_to(target: float | None, cost: Cost) -> Column[Line]:
    """Return the column of a cost up to the target; a dash where some of it was not counted."""
    unit = next(name for name, size in cost.units if size == 1)
    entry = partial(_to_target, given=target, cost=cost)
    return Column(f"{cost.title} to it", entry, "mean over seeds", unit=unit)


def _fronts(line: Line) -> Entry:
    setting, cell = line
    if len(setting.cells) == 1:
        return words(NONE)
    found = [cost.title for cost in (TRAFFIC, TIME) if cell in front(setting.cells, cost)]
    return words(", ".join(found) or "no")


def target_of(setting: Setting, given: float | None) -> float:
    """Return the target of a setting: the given one, else the reference's validation score at the end."""
    if given is not None:
        return given
    reference = setting.reference(setting.cells[0], setting.against) or setting.cells[0]
    curves = [run.curves.get(setting.metric.field("val"), np.zeros(0)) for run in reference.runs.values()]
    finals = [curve[~np.isnan(curve)][-1:] for curve in curves]
    return float(np.mean(np.concatenate(finals))) if any(map(len, finals)) else math.nan


def _to_target(line: Line, given: float | None, cost: Cost | None) -> Entry:
    """Return what it took to reach the target, or how many runs did; rounds where no cost is asked for."""
    setting, cell = line
    metric, target = setting.metric, target_of(setting, given)
    field, runs = metric.field("val"), list(cell.runs.values())
    found = [targets.first_round(run.curves.get(field, np.zeros(0)), target, metric.higher) for run in runs]
    reached = [(run, at) for run, at in zip(runs, found, strict=True) if at is not None]
    if len(reached) < len(runs):
        return words(f"{len(reached)} of {len(runs)} runs")
    if cost is None:
        return number(float(np.mean([at + 1 for _, at in reached])), 0)
    return measured(float(np.mean([run.costs[cost.curve][at] for run, at in reached])), cost.units)
