"""Charts over rounds: lines with bands, stacked areas, the clusters' timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.page.axes import COLOURS, DASHES, Chart, Float, Scale, area, path, scale, thinned
from fedmpi.analysis.page.units import MEGABYTES, SECONDS, unit_of

_MOST_POINTS = 200
_MOST_CLIENTS = 64
_FAR_HIGHER = 3.0
_ROOM_FOR_BANDS = 0.4
"""Of the range of the lines, to each side."""
_COSTS = {
    "MB": ("traffic of all clients", MEGABYTES),
    "s": ("time", SECONDS),
    "virtual": ("virtual time", SECONDS),
}
"""What lines may go by in place of rounds."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes
    ----------
    label : str
        By it the page's legend hides and shows it.
    colour, dash : int
        Numbers of the style sheet's, taken round and round.
    values : float64 [R]
        NaN where there is none.
    edges : sequence of float64 [R]
        The lower and the upper one of a band around it; where it is far wider than the lines, the chart cuts
        it off.
    """

    label: str
    colour: int
    dash: int
    values: Float
    edges: Sequence[Float] = ()


def lines(
    title: str,
    about: tuple[str, str],
    series: Sequence[Line],
    log: bool = False,
    marks: Sequence[int] = (),
    most_points: int = _MOST_POINTS,
    spent: Mapping[str, float] | None = None,
) -> Markup:
    """Return a chart of lines over rounds counted from 1; the pointer shows their values.

    Parameters
    ----------
    title : str
    about : tuple of str
        Whose chart it is, and the label of its values.
    series : sequence of Line
    log : bool
        Whether values are on a logarithmic axis.
    marks : sequence of int
        Rounds that get a vertical line.
    most_points : int
        Points of a line; of more rounds, some are left out.
    spent : mapping of str to float or None
        The most that a line spends of ``MB``, ``s`` and ``virtual``: buttons of the page choose these axes.
    """
    chart, (subject, y_label) = Chart(title), about
    count = max(len(each.values) for each in series)
    x = Scale(1, max(count, 2), chart.left, chart.right, whole=True)
    y = scale(_seen(series, log), chart.bottom, chart.top, log)
    chart.grid(x, y, "round", y_label)
    across: dict[str, list[Any]] = {"round": [*x.ends, "", 1.0, "round"]}
    for cost, most in (spent or {}).items():
        label, units = _COSTS[cost]
        unit, size = unit_of(most, units)
        across[cost] = [0, most / size or 1.0, chart.left, chart.right, unit, size, f"{label} ({unit})"]
    for number in marks:
        chart.path("split", f"M{float(x(number)):.1f} {chart.top}V{chart.bottom}")
    rounds = [_kept(each.values, most_points) for each in series]
    for each, kept in zip(series, rounds, strict=True):
        edges = [y(np.clip(edge[kept], y.low, y.high)) for edge in each.edges]
        if edges:
            chart.fine(f"band c{each.colour % COLOURS}", area(x(kept + 1), *edges), series=each.label)
    paths = [path(x(kept + 1), y(each.values[kept])) for each, kept in zip(series, rounds, strict=True)]
    for place, (each, data) in enumerate(zip(series, paths, strict=True)):
        covered = paths[place + 1 :].count(data)  # a line that others lie upon is wider, so that it shows
        wide = f'style="stroke-width:{1.7 + 3 * covered:.1f}" ' if covered else ""
        kind = f"line c{each.colour % COLOURS} d{each.dash % DASHES}"
        chart.fine(kind, data, series=each.label, more=wide)
    label = f"{subject}: {title}, {y_label} by round, {len(series)} lines"
    alike = grouped(zip(series, paths, strict=True), lambda pair: pair[1])
    told = [", ".join(each.label for each, _ in pairs) for data, pairs in alike.items() if data and pairs[1:]]
    note = "; ".join(f"{names} coincide" for names in told)
    return chart.figure(label, note, _for_script(across, y))


def _for_script(across: Mapping[str, list[Any]], y: Scale) -> str:
    """Return the attributes by which the page's script shows values of a chart, and a part of it."""
    plot = escape(json.dumps({"x": across, "y": y.ends, "log": y.log}))
    return f'class="lines" tabindex="0" data-plot="{plot}"'


def _seen(series: Sequence[Line], log: bool) -> Float:
    """Return the values that the axis shows: all of the lines, and of bands what is not much further out."""
    values = np.concatenate([each.values for each in series])
    edges = [edge for each in series for edge in each.edges]
    if log or not edges or np.isnan(values).all():
        return values
    low, high = np.nanmin(values), np.nanmax(values)
    room = _ROOM_FOR_BANDS * (high - low)
    return np.concatenate([values, np.clip(np.concatenate(edges), low - room, high + room)])


def _kept(values: Float, most_points: int) -> npt.NDArray[np.int64]:
    """Return the rounds that are drawn: at most so many of those that have a value."""
    present = np.flatnonzero(np.isfinite(values))
    return present[thinned(len(present), most_points)]


def stack(title: str, y_label: str, names: Sequence[str], values: Float) -> Markup:
    """Return areas on top of each other over rounds.

    Parameters
    ----------
    values : float64 [R, len(names)]
        Not negative. Many rounds are joined into at most 100 intervals, each shown by its mean; few that take
        far more than all others are cut off, and named.
    """
    chart = Chart(title)
    edges = thinned(len(values) + 1, 101)
    sums = np.concatenate([np.zeros((1, len(names))), np.cumsum(values, axis=0)])
    means = np.diff(sums[edges], axis=0) / np.diff(edges)[:, None]
    tops = np.concatenate([np.zeros((len(means), 1)), np.cumsum(means, axis=1)], axis=1)
    x, totals = _rounds(len(values), chart), tops[:, -1]
    usual, most = float(np.quantile(totals, 0.95)), float(totals.max())
    y = scale([0.0, most if most < _FAR_HIGHER * usual else usual], chart.bottom, chart.top, zero=True)
    chart.grid(x, y, "round", y_label)
    across = np.repeat(x(edges + 0.5), 2)[1:-1]
    for place, name in enumerate(names):
        low, high = (np.repeat(y(np.minimum(tops[:, place + side], y.high)), 2) for side in (0, 1))
        tip = f"{name}: {means[:, place].mean():.4g} on average"
        chart.fine(f"fill c{place}", area(across, low, high), tip, name)
    beyond = [
        f"round {first + 1}{f' to {last}' * (last > first + 1)} ({total:.3g})"
        for (first, last), total in zip(pairwise(edges.tolist()), totals, strict=True)
        if total > y.high
    ]
    note = f"Cut off: {', '.join(beyond)}" if beyond else ""
    label = f"{title}: {y_label} by round, by phase"
    return chart.figure(label, note, _for_script({"round": [*x.ends, "", 1.0, "round"]}, y))


def _rounds(count: int, chart: Chart) -> Scale:
    """Return the scale of areas over rounds, in which a round reaches half a round to each side."""
    return Scale(0.5, max(count, 1) + 0.5, chart.left, chart.right, whole=True)


def timeline(title: str, clients: Sequence[str], clusters: npt.NDArray[np.int64]) -> Markup:
    """Return who was with whom: a row per client, coloured by its cluster over the rounds.

    Parameters
    ----------
    clusters : int64 [R, n]
        Cluster of each client after each round; of many clients the first are shown.
    """
    changes = [0, *(np.flatnonzero((np.diff(clusters, axis=0) != 0).any(axis=1)) + 1).tolist()]
    history, changes = clusters[changes], [*changes, len(clusters)]
    order = np.lexsort(history[::-1])[:_MOST_CLIENTS]
    row = min(14.0, max(5.0, 200.0 / len(order)))
    chart = Chart(title, left=72.0, bottom=8.0 + row * len(order))
    x = _rounds(len(clusters), chart)
    edges = x(np.array(changes) + 0.5)
    colours = {int(value): place for place, value in enumerate(dict.fromkeys(history.ravel().tolist()))}
    chart.grid(x, None, "round")
    for line, client in enumerate(order.tolist()):
        top = chart.top + row * line
        if row >= 9 or line % 3 == 0:
            chart.text(chart.left - 5, top + row * 0.5 + 3.5, clients[client], "small end")
        own = history[:, client]
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(own)) + 1).tolist(), len(own)]):
            together = [clients[other] for other in np.flatnonzero(history[begin] == own[begin]).tolist()]
            colour = colours[int(own[begin])]
            there = f"cluster {colour + 1} of {len(together)} {_some(together)}"
            tip = f"{clients[client]}, rounds {changes[begin] + 1} to {changes[end]}: {there}"
            size = (edges[end] - edges[begin], row - 1)
            chart.rect(f"fill c{colour % COLOURS}", edges[begin], top + 0.5, size, tip)
    splits = len(changes) - 2
    return chart.figure(f"{title}: clusters of {len(order)} clients by round, {splits} rounds with a split")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"({', '.join(names[:4])}{more})"
