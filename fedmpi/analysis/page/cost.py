"""Sections of the page on what it cost: by score, phase and collective; and who holds which data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.columns import score
from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.cells import Cell, Line, Setting, by_metric, lines
from fedmpi.analysis.page.collect import Digest, Float, Holdings
from fedmpi.analysis.page.fronts import ENERGY, ON_A_FRONT, TIME, TRAFFIC, VIRTUAL, Cost, clocked, front
from fedmpi.analysis.page.marks import Point, bars, scatter
from fedmpi.analysis.page.overview import NAMES, of_runs, spent
from fedmpi.analysis.page.sections import Section, areas_legend, cells_legend, grid, part, table
from fedmpi.analysis.page.units import JOULES, MEGABYTES, PERCENT, SECONDS, Unit, human, measured
from fedmpi.analysis.summary import setting as setting_of
from fedmpi.metrics import targets
from fedmpi.store.schema import PHASES, SECURE_STEPS
from fedmpi.tables.table import Column, Entry, filled, number, share

_MOST_CLIENTS = 60


def tradeoff(settings: Sequence[Setting], target: float | None) -> Section:
    """Return score against each cost, and a table of costs with those of reaching a target.

    Parameters
    ----------
    target : float or None
        Value of the headline on validation data; None: what the reference has in the last round.
    """
    several = [each for each in settings if len(each.cells) > 1]
    pairs = product(several, (TRAFFIC, TIME, *[VIRTUAL] * clocked(_cells(settings))))
    charts = [_against(*pair) for pair in pairs if any(c.mean(pair[1].name) > 0 for c in pair[0].cells)]
    parts = [part("tradeoff")(target is None, bool(charts))]
    if charts:
        parts += [cells_legend(_cells(several)), grid(charts, "wide")]
    for place, alike in enumerate(by_metric(settings)):
        columns = _columns(alike, target)
        parts.append(table("Costs, means over seeds", columns, lines(alike), f"costs-{place}", ""))
    return Section("tradeoff", "Score against cost", Markup("").join(parts))


def _against(setting: Setting, cost: Cost) -> Markup:
    metric, on_front = setting.metric, front(setting.cells, cost)
    points = []
    for cell in setting.cells:
        own = cell.score()
        half = 0.0 if math.isnan(own.half) else own.half
        ends = max(own.mean - half, metric.low), min(own.mean + half, metric.high)
        interval, mean = (metric.scale * ends[0], metric.scale * ends[1]), metric.scale * own.mean
        points.append(Point(cell.label, cell.colour, cell.mean(cost.name), mean, interval, cell in on_front))
    title = f"{setting.heading}: {metric.label()} against {cost.title}"
    return scatter(title, (cost.meaning, metric.label(unit=True)), cost.units, points)


def _cells(settings: Sequence[Setting]) -> list[Cell]:
    return [cell for each in settings for cell in each.cells]


def _columns(settings: Sequence[Setting], target: float | None) -> list[Column[Line]]:
    metric = settings[0].metric
    counted = any("joules" in run.summary for run in _runs(settings))
    further = [*[VIRTUAL] * clocked(_cells(settings)), *[ENERGY] * counted]
    return [
        *NAMES,
        Column(f"{metric.label(unit=True)}, last round", lambda line: score(metric, line[1].score())),
        Column("seeds", lambda line: len(line[1].runs)),
        Column("rounds", lambda line: number(line[1].config["rounds"], 0)),
        spent("time", "total_seconds", SECONDS, "all rounds"),
        spent("a round", "round_seconds_median", SECONDS, "median over rounds"),
        spent("traffic", "client_megabytes", MEGABYTES, "payload sent and received by all clients"),
        of_runs("model GFLOP", "model_gflop", 0),
        *filled([ON_A_FRONT], lines(settings)),
        Column(
            f"target, val {metric.heading}",
            lambda line: number(metric.scale * _target(line[0], target), metric.digits),
        ),
        _to_target(target, None),
        *(_to_target(target, cost) for cost in (TIME, TRAFFIC, *further)),
    ]


def _target(setting: Setting, given: float | None) -> float:
    """Return the target of a setting: the given one, else the reference's validation score at the end."""
    if given is not None:
        return given
    reference = setting.reference(setting.cells[0], setting.against) or setting.cells[0]
    curves = [run.curves.get(setting.metric.field("val"), np.zeros(0)) for run in reference.runs.values()]
    finals = np.concatenate([curve[~np.isnan(curve)][-1:] for curve in curves])
    return float(np.mean(finals)) if len(finals) else math.nan


def _to_target(target: float | None, cost: Cost | None) -> Column[Line]:
    """Return the column of a cost up to the target, None for rounds, or of how many runs reached it."""

    def entry(line: Line) -> Entry | str:
        metric, runs, value = line[1].metric, list(line[1].runs.values()), _target(line[0], target)
        curves = [run.curves.get(metric.field("val"), np.zeros(0)) for run in runs]
        found = [targets.first_round(curve, value, metric.higher) for curve in curves]
        reached = [(run, at) for run, at in zip(runs, found, strict=True) if at is not None]
        if len(reached) < len(runs):
            return f"{len(reached)} of {len(runs)} runs"
        if cost is None:
            return number(float(np.mean([at + 1 for _, at in reached])), 0)
        return measured(float(np.mean([run.costs[cost.curve][at] for run, at in reached])), cost.units)

    if cost is None:
        return Column("rounds to it", entry, "mean over seeds")
    unit = next(name for name, size in cost.units if size == 1)
    return Column(f"{cost.title} to it", entry, "mean over seeds", unit=unit)


def costliest(cell: Cell) -> tuple[str, float]:
    """Return the phase that takes most, and its share of all."""
    seconds = _means(cell, "phases", PHASES)
    place, total = int(np.argmax(seconds)), float(seconds.sum())
    return PHASES[place], float(seconds[place]) / total if total else 0.0


def _means(cell: Cell, kind: str, names: Sequence[str]) -> Float:
    """Return the means over seeds of a run's `phases`, `secure`, `joules` or `traffic` by name [names]."""
    found = [[run.spent[kind].get(name, 0.0) for name in names] for run in cell.runs.values()]
    means: Float = np.array(found).reshape(len(found), len(names)).mean(axis=0)
    return means


def _pictures(
    settings: Sequence[Setting], kind: str, parts: Sequence[str], about: tuple[str, str, str],
    units: Sequence[Unit], note: Callable[[Cell], str] | None = None,
) -> Markup:  # fmt: skip
    """Return bars of what cells spent by part below a legend, a picture per setting; nothing without any.

    Parameters
    ----------
    settings : sequence of Setting
    kind : str
        As of `_means`.
    parts : sequence of str
    about : tuple of str
        Title, axis and legend.
    units : sequence of Unit
    note : callable
        Returns what stands behind a cell's bar; by default its length.
    """
    title, axis, legend = about
    charts = []
    for each in settings:
        cells = [cell for cell in each.cells if any(run.spent[kind] for run in cell.runs.values())]
        if cells:
            values = np.nan_to_num(np.array([_means(cell, kind, parts) for cell in cells]))
            ends = [human(length, units) for length in values.sum(axis=1)]
            notes = map(note, cells) if note else ends
            rows = [(cell.label, text) for cell, text in zip(cells, notes, strict=True)]
            charts.append(bars(f"{each.heading}: {title}", axis, rows, parts, values, units))
    return areas_legend(legend, parts) + grid(charts) if charts else Markup("")


def _most(cell: Cell) -> str:
    return "{} {:.0%}".format(*costliest(cell))


def _joules(cell: Cell) -> str:
    return human(cell.mean("joules"), JOULES)


def time(settings: Sequence[Setting]) -> Section:
    """Return where the time went, and how fast the work was done."""
    of_rank, nodes = "time of a rank", "processors and memory of all nodes"
    steps = ("secure sums by step", of_rank, "Steps of a secure sum")
    content = part("time")()
    content += _pictures(settings, "phases", PHASES, ("time by phase", of_rank, "Phases"), SECONDS, _most)
    content += _pictures(settings, "secure", tuple(SECURE_STEPS), steps, SECONDS)
    by_phase = ("energy by phase", nodes, "Phases")
    if energy := _pictures(settings, "joules", PHASES, by_phase, JOULES, _joules):
        content += part("energy")() + energy
    rates = table("Rates and traffic", _rates(settings), lines(settings), "rates")
    return Section("time", "Time: which phase costs the most", content + rates)


def traffic(settings: Sequence[Setting]) -> Section:
    """Return the bytes of each collective."""
    found = dict.fromkeys(name for run in _runs(settings) for name in run.spent["traffic"])
    names = [name for name in found if name != "Ibarrier"]
    about = ("bytes by collective", "payload of all ranks", "Collectives")
    drawn = _pictures(settings, "traffic", names, about, MEGABYTES)
    return Section("traffic", "Bytes by collective", part("traffic")() + drawn)


def _rates(settings: Sequence[Setting]) -> list[Column[Line]]:
    energy = spent("energy", "joules", JOULES, "processors, memory and GPUs of all nodes, by their counters")
    return [
        *NAMES,
        Column("ranks", lambda line: _ranks(line[1])),
        Column("costliest phase", lambda line: costliest(line[1])[0]),
        Column("its share %", lambda line: share(costliest(line[1])[1], 0)),
        of_runs(
            "model GFLOP/s", "model_rate", 1,
            "counted work of training and evaluation per second that a rank spent in them",
        ),
        of_runs(
            "executed GFLOP/s", "executed_rate", 1,
            "what the chosen kernels did, per second that a rank spent in them",
        ),
        spent("traffic of ranks", "collective_megabytes", MEGABYTES, "payload of all ranks' collectives"),
        spent("virtual time", "virtual_seconds", SECONDS, "modelled time of a real federation"),
        *(_of_devices() if clocked(_cells(settings)) else []),
        *([energy] if any("joules" in run.summary for run in _runs(settings)) else []),
    ]  # fmt: skip


def _of_devices() -> list[Column[Line]]:
    """Return the columns of what the clients' devices did."""

    def percent(name: str) -> Callable[[Line], Entry]:
        return lambda line: number(100 * line[1].mean(name), 1)

    return [
        Column("devices in use", percent("utilisation"), "share of virtual time at work, %"),
        Column("stale updates", percent("stale_share"), "that start from an older model than they change, %"),
        of_runs("staleness", "mean_staleness", 1, "steps of the server, mean over updates"),
        of_runs("wasted GFLOP", "wasted_gflop", 1, "training of updates that were not used"),
    ]


def _runs(settings: Sequence[Setting]) -> list[Digest]:
    return [run for _, cell in lines(settings) for run in cell.runs.values()]


def _ranks(cell: Cell) -> str:
    counts = {count for run in cell.runs.values() for count in run.summary["ranks"]}
    return ", ".join(map(str, sorted(counts)))


def partitions(digests: Sequence[Digest]) -> Section:
    """Return the class shares of the clients, a picture per partition."""
    found: dict[str, tuple[Digest, Holdings]] = {}
    for run in digests:
        if run.holdings is not None:
            found.setdefault(run.holdings.mark, (run, run.holdings))
    most = max((holdings.counts.shape[1] for _, holdings in found.values()), default=0)
    legend = areas_legend("Classes", [f"class {place}" for place in range(min(most, 2 * COLOURS))])
    charts = grid(_partition(run, holdings) for run, holdings in found.values())
    return Section("partition", "Who holds which classes", part("partition")() + legend + charts)


def _partition(run: Digest, holdings: Holdings) -> Markup:
    shown = min(len(run.clients), _MOST_CLIENTS)
    counts = holdings.counts[:shown].astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    alone = len(set(holdings.datasets)) == 1
    rows = [
        (client if alone or dataset in client else f"{client} {dataset}", f"{count:,.0f} examples")
        for client, dataset, count in zip(run.clients, holdings.datasets, totals[:, 0], strict=False)
    ]
    shares = 100 * counts / np.maximum(totals, 1)
    parts = [f"class {place}" for place in range(counts.shape[1])]
    more = f", the first {shown} of {len(run.clients)} clients" if shown < len(run.clients) else ""
    named = f"{setting_of(run.config, 'dataset')}, {setting_of(run.config, 'partition')}"
    title = f"{named}: EMD {holdings.emd:.3f}{more}"
    return bars(title, "share of the client's examples", rows, parts, shares, PERCENT)
