"""Charts over rounds: lines with bands, stacked areas, the clusters' timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from fedmpi.analysis.page.axes import (
    COLOURS,
    DASHES,
    HEIGHT,
    Box,
    Float,
    Scale,
    area,
    drawn,
    group,
    panel,
    path,
    scale,
    text,
    thinned,
)
from fedmpi.analysis.page.sections import part
from fedmpi.analysis.page.units import MEGABYTES, SECONDS, unit_of

_MOST_POINTS = 200
_MOST_CLIENTS = 64
_FAR_HIGHER = 3.0
_ROOM_FOR_BANDS = 0.4
"""Of the range of the lines, to each side."""
_COSTS = {"MB": ("traffic of all clients", MEGABYTES), "s": ("time", SECONDS)}
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
    low, high : float64 [R] or None
        A band around it; where it is far wider than the lines, the chart cuts it off.
    """

    label: str
    colour: int
    dash: int
    values: Float
    low: Float | None = None
    high: Float | None = None


@dataclass(frozen=True)
class Axes:
    """What a chart over rounds is called, whose it is, and how its values are scaled and written."""

    title: str
    subject: str
    y_label: str
    log: bool = False
    factor: float = 1.0
    marks: tuple[int, ...] = ()
    """Rounds, counted from 1, that get a vertical line."""


def lines(
    axes: Axes,
    series: Sequence[Line],
    most_points: int = _MOST_POINTS,
    spent: Mapping[str, float] | None = None,
) -> Markup:
    """Return a chart of lines over rounds counted from 1; the pointer shows their values.

    Parameters
    ----------
    axes : Axes
    series : sequence of Line
    most_points : int
        Points of a line; of more rounds, some are left out.
    spent : mapping of str to float or None
        The most that a line spends of ``MB`` and ``s``: buttons of the page choose these axes.
    """
    box = Box()
    count = max((len(each.values) for each in series), default=1)
    x = Scale(1, max(count, 2), box.left, box.right, whole=True)
    y = scale(_seen(axes, series), box.bottom, box.top, axes.log)
    parts = [box.grid(x, y, "round", axes.y_label)]
    across: dict[str, list[Any]] = {"round": [*x.ends, "", 1.0]}
    for cost, most in (spent or {}).items():
        across[cost], cost_axis = _cost_axis(box, cost, most)
        parts.append(cost_axis)
    for number in axes.marks:
        parts.append(Markup(f'<path class="split" d="M{float(x(number)):.1f} {box.top}V{box.bottom}"/>'))
    parts += [_band(each, x, y, axes.factor, most_points) for each in series]
    paths = [_path(each, x, y, axes.factor, most_points) for each in series]
    for place, (each, data) in enumerate(zip(series, paths, strict=True)):
        parts.append(_line(each, data, paths[place + 1 :].count(data)))
    plot = json.dumps({"x": across, "y": y.ends, "log": axes.log})
    label = f"{axes.subject}: {axes.title}, {axes.y_label} by round, {len(series)} lines"
    more = f'class="lines" tabindex="0" data-plot="{escape(plot)}"'
    return panel(axes.title, parts, HEIGHT, label, _coinciding(series, paths), more)


def _cost_axis(box: Box, cost: str, most: float) -> tuple[list[Any], Markup]:
    """Return what the script needs of an axis of a cost, and the axis, which is hidden at first."""
    label, units = _COSTS[cost]
    unit, size = unit_of(most, units)
    x = Scale(0, most / size or 1.0, box.left, box.right)
    axis = box.across(x, f"{label} ({unit})", f'class="across off" data-across="{cost}"')
    return [*x.ends, unit, size], axis


def _seen(axes: Axes, series: Sequence[Line]) -> Float:
    """Return the values that the axis shows: all of the lines, and of bands what is not much further out."""
    values = np.concatenate([axes.factor * each.values for each in series] or [np.zeros(0)])
    edges = [axes.factor * edge for each in series for edge in (each.low, each.high) if edge is not None]
    if axes.log or not edges or np.isnan(values).all():
        return values
    low, high = np.nanmin(values), np.nanmax(values)
    room = _ROOM_FOR_BANDS * (high - low)
    return np.concatenate([values, np.clip(np.concatenate(edges), low - room, high + room)])


def _coinciding(series: Sequence[Line], paths: Sequence[str]) -> str:
    """Say which lines are the same line."""
    labels: dict[str, list[str]] = {}
    for each, data in zip(series, paths, strict=True):
        labels.setdefault(data, []).append(each.label)
    return "; ".join(
        f"{', '.join(names)} coincide" for data, names in labels.items() if data and len(names) > 1
    )


def _band(each: Line, x: Scale, y: Scale, factor: float, most_points: int) -> Markup:
    if each.low is None or each.high is None:
        return Markup("")
    kept = _kept(each, most_points)
    low, high = (np.clip(factor * edge[kept], y.low, y.high) for edge in (each.low, each.high))
    band = area(x(kept + 1), y(low), y(high))
    return drawn(band, f"band c{each.colour % COLOURS}", f'data-series="{escape(each.label)}"')


def _kept(each: Line, most_points: int) -> npt.NDArray[np.int64]:
    """Return the rounds that are drawn: at most so many of those that have a value."""
    present = np.flatnonzero(np.isfinite(each.values))
    return present[thinned(len(present), most_points)]


def _path(each: Line, x: Scale, y: Scale, factor: float, most_points: int) -> str:
    kept = _kept(each, most_points)
    return path(x(kept + 1), y(factor * each.values[kept]))


def _line(each: Line, data: str, covered: int) -> Markup:
    """Return a line; one that others lie upon is wider, so that it shows."""
    kind = f"line c{each.colour % COLOURS} d{each.dash % DASHES}"
    named = f'data-series="{escape(each.label)}" data-label="{escape(each.label)}"'
    wide = f' style="stroke-width:{1.7 + 3 * covered:.1f}"' if covered else ""
    return drawn(data, kind, named + wide)


def stack(title: str, y_label: str, names: Sequence[str], values: Float) -> Markup:
    """Return areas on top of each other over rounds.

    Parameters
    ----------
    values : float64 [R, len(names)]
        Not negative. Many rounds are joined into at most 100 intervals, each shown by its mean; few that take
        far more than all others are cut off, and named.
    """
    box = Box()
    edges = thinned(len(values) + 1, 101)
    sums = np.concatenate([np.zeros((1, len(names))), np.cumsum(values, axis=0)])
    means = np.diff(sums[edges], axis=0) / np.diff(edges)[:, None]
    tops = np.concatenate([np.zeros((len(means), 1)), np.cumsum(means, axis=1)], axis=1)
    x = _rounds(len(values), box)
    top = _usual_top(tops[:, -1])
    y = scale([0.0, top], box.bottom, box.top, zero=True)
    across = np.repeat(x(edges + 0.5), 2)[1:-1]
    parts = [box.grid(x, y, "round", y_label)]
    for place, name in enumerate(names):
        low, high = (np.repeat(y(np.minimum(tops[:, place + side], y.high)), 2) for side in (0, 1))
        if shape := area(across, low, high):
            tip = f"<title>{escape(name)}: {means[:, place].mean():.4g} on average</title>"
            parts.append(group(name, drawn(shape, f"fill c{place}"), tip))
    label = f"{title}: {y_label} by round, by phase"
    return panel(title, parts, HEIGHT, label, _cut_off(edges, tops[:, -1], y.high))


def _usual_top(totals: Float) -> float:
    """Return how high an axis of totals reaches: to the highest, unless few are far higher than the rest."""
    usual, most = float(np.quantile(totals, 0.95)), float(totals.max())
    return most if most < _FAR_HIGHER * usual else usual


def _cut_off(edges: npt.NDArray[np.int64], totals: Float, top: float) -> str:
    """Say which rounds reach beyond the axis."""
    beyond = [
        f"round {first + 1}{f' to {last}' * (last > first + 1)} ({total:.3g})"
        for first, last, total in zip(edges.tolist(), edges[1:].tolist(), totals, strict=False)
        if total > top
    ]
    return f"Cut off: {', '.join(beyond)}" if beyond else ""


def _rounds(count: int, box: Box) -> Scale:
    """Return the scale of areas over rounds, in which a round reaches half a round to each side."""
    return Scale(0.5, max(count, 1) + 0.5, box.left, box.right, whole=True)


def timeline(title: str, clients: Sequence[str], clusters: npt.NDArray[np.int64]) -> Markup:
    """Return who was with whom: a row per client, coloured by its cluster over the rounds.

    Parameters
    ----------
    clusters : int64 [R, n]
        Cluster of each client after each round; of many clients the first are shown.
    """
    changes = [0, *(np.flatnonzero((np.diff(clusters, axis=0) != 0).any(axis=1)) + 1).tolist()]
    history = clusters[changes]
    rect = part("rect")
    order = np.lexsort(history[::-1])[:_MOST_CLIENTS]
    row = min(14.0, max(5.0, 200.0 / len(order)))
    box = Box(left=72.0, bottom=8.0 + row * len(order), height=8.0 + row * len(order) + 34.0)
    x = _rounds(len(clusters), box)
    ends = [*changes[1:], len(clusters)]
    left = x(np.array(changes) + 0.5)
    right = np.append(left[1:], box.right)
    colours = {int(value): place for place, value in enumerate(dict.fromkeys(history.ravel().tolist()))}
    parts = [box.grid(x, None, "round")]
    for line, client in enumerate(order.tolist()):
        top = box.top + row * line
        if row >= 9 or line % 3 == 0:
            parts.append(text(box.left - 5, top + row * 0.5 + 3.5, clients[client], "small end"))
        for begin, end in _stretches(history[:, client]):
            cluster = int(history[begin, client])
            together = [clients[other] for other in np.flatnonzero(history[begin] == cluster).tolist()]
            rounds = f"rounds {changes[begin] + 1} to {ends[end]}"
            there = f"cluster {colours[cluster] + 1} of {len(together)} {_some(together)}"
            tip, kind = f"{clients[client]}, {rounds}: {there}", f"fill c{colours[cluster] % COLOURS}"
            parts.append(rect(kind, left[begin], top + 0.5, right[end] - left[begin], row - 1, tip))
    label = f"{title}: clusters of {len(order)} clients by round, {len(changes) - 1} rounds with a split"
    return panel(title, parts, box.height, label)


def _stretches(clusters: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return first and last index of each run of equal values."""
    begins = [0, *(np.flatnonzero(np.diff(clusters)) + 1).tolist()]
    return list(zip(begins, [begin - 1 for begin in begins[1:]] + [len(clusters) - 1], strict=True))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"({', '.join(names[:4])}{more})"
