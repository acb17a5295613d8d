"""Charts of single numbers: violins, heat maps, stacked bars, points with their front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.page.axes import COLOURS, HEIGHT, WIDTH, Chart, Float, Scale, path, scale
from fedmpi.analysis.page.units import Unit, human, unit_of

_GOLDEN = 0.618034
"""The fractional parts of its multiples fill a strip evenly, in the order of the points."""


@dataclass(frozen=True)
class Violin:
    """Values of one group, each with a name."""

    label: str
    colour: int
    names: Sequence[str]
    values: Float

    @property
    def width(self) -> float:
        """The width of the kernels of its density, by Scott's rule."""
        return float(np.std(self.values) * len(self.values) ** -0.2)

    @property
    def reach(self) -> tuple[float, float]:
        """How far it reaches."""
        return float(self.values.min()) - self.width, float(self.values.max()) + self.width

    def density(self) -> tuple[Float, Float]:
        """Return levels and a Gaussian kernel density over them, scaled to at most 1."""
        levels = np.linspace(*self.reach, 40)
        density = np.exp(-0.5 * ((levels[:, None] - self.values) / self.width) ** 2).sum(axis=1)
        return levels, density / density.max()


def violins(title: str, y_label: str, groups: Sequence[Violin]) -> Markup:
    """Return a violin per group, its values as dots and a bar at their mean; a line at 0."""
    chart = Chart(title, bottom=HEIGHT - 26.0, below=26.0)
    y = scale([0.0, *(end for each in groups for end in each.reach)], chart.bottom, chart.top)
    wide = (chart.right - chart.left) / len(groups)
    chart.grid(None, y, "", y_label)
    chart.path("zero", f"M{chart.left} {float(y(0)):.1f}H{chart.right}")
    for place, each in enumerate(groups):
        middle = chart.left + (place + 0.5) * wide
        low = chart.bottom + (15.0 if len(groups) < 6 or place % 2 == 0 else 25.0)
        with chart.series(each.label):
            _violin(chart, each, middle, min(wide * 0.42, 42.0), y)
            chart.text(middle, low, each.label, "tick middle")
    return chart.figure(f"{title}: {y_label} of {len(groups)} groups")


def _violin(chart: Chart, each: Violin, middle: float, half: float, y: Scale) -> None:
    colour = f"c{each.colour % COLOURS}"
    if np.std(each.values) > 0:
        levels, density = each.density()
        sides = np.concatenate([middle + half * density, (middle - half * density)[::-1]])
        chart.fine(f"band {colour}", path(sides, y(np.concatenate([levels, levels[::-1]]))) + "z")
    shift = ((np.arange(len(each.values)) * _GOLDEN) % 1.0 - 0.5) * half
    for name, value, right in zip(each.names, each.values, shift, strict=True):
        chart.dot(f"dot {colour}", middle + right, float(y(value)), f"{name}: {value:+.2f}")
    mean = float(each.values.mean())
    bar = f"M{middle - half:.1f} {float(y(mean)):.1f}h{2 * half:.1f}"
    chart.path("mean", bar, f"{each.label}: mean {mean:+.2f}")


def heat_map(title: str, unit: str, rows: Sequence[str], columns: Sequence[str], values: Float) -> Markup:
    """Return a table in which a deeper colour is a larger share of its column.

    Parameters
    ----------
    title, unit : str
    rows, columns : sequence of str
        Their names.
    values : float64 [rows, columns]
    """
    high = min(22.0, max(4.0, 176.0 / len(rows)))
    chart = Chart(title, top=22.0, bottom=22.0 + high * len(rows), below=8.0)
    wide = (chart.right - chart.left) / len(columns)
    most = values.max(axis=0, initial=0.0)
    shares = np.divide(values, most, where=most > 0, out=np.zeros_like(values))
    for place, name in enumerate(columns):
        chart.text(chart.left + (place + 0.5) * wide, 15.0, name, "small middle")
    for line, row in enumerate(rows):
        top = chart.top + line * high
        if high >= 9 or line % 4 == 0:
            chart.text(chart.left - 5, top + high / 2 + 3.5, row, "small end")
        for place, column in enumerate(columns):
            value, left = values[line, place], chart.left + place * wide
            depth, tip = f"{0.06 + 0.6 * shares[line, place]:.2f}", f"{row}, {column}: {value:.4g} {unit}"
            chart.rect("heat", left + 0.5, top + 0.5, (wide - 1, high - 1), tip, faded=depth)
            if high >= 12:
                chart.text(left + wide / 2, top + high / 2 + 3.5, f"{value:.3g}", "value middle")
    return chart.figure(f"{title}: {unit} of {len(rows)} ranks in {len(columns)} phases")


def bars(
    title: str, x_label: str, rows: Sequence[tuple[str, str]], parts: Sequence[str], values: Float,
    units: Sequence[Unit],
) -> Markup:  # fmt: skip
    """Return stacked horizontal bars.

    Parameters
    ----------
    title, x_label : str
    rows : sequence of tuple of str
        What each bar is called, and what stands behind it.
    parts : sequence of str
        What the pieces are called.
    values : float64 [rows, parts]
    units : sequence of Unit
        Of the values; the axis has the one that fits.
    """
    longest, room = (max(map(len, texts)) for texts in zip(*rows, strict=True))
    high = min(20.0, max(9.5, 400.0 / len(rows)))
    left, right = min(20 + 5.8 * longest, 146.0), WIDTH - 8 - 6.2 * room
    chart = Chart(title, left, right, bottom=8.0 + high * len(rows))
    totals = values.sum(axis=1)
    name, size = unit_of(float(totals.max()), units)
    x = scale([0.0, float(totals.max()) / size], left, right, zero=True)
    chart.grid(x, None, f"{x_label} ({name})".strip())
    for line, (row, note) in enumerate(rows):
        top = chart.top + line * high
        with chart.series(row):
            chart.text(left - 5, top + high / 2 + 3.5, row, "small end")
            ends = x(np.concatenate([[0.0], np.cumsum(values[line])]) / size)
            for place in np.flatnonzero(values[line]).tolist():
                value = float(values[line, place])
                tip = f"{row}, {parts[place]}: {human(value, units)}, {100 * value / totals[line]:.0f} %"
                faded = "0.55" if place // COLOURS % 2 else ""
                extent = (max(ends[place + 1] - ends[place], 0.1), high - 2)
                kind = f"fill c{place % COLOURS}"
                chart.rect(kind, ends[place], top + 1, extent, tip, series=parts[place], faded=faded)
            chart.text(float(ends[-1]) + 4, top + high / 2 + 3.5, note, "small")
    return chart.figure(f"{title}: {len(rows)} bars of {', '.join(parts[:8])}")


@dataclass(frozen=True)
class Point:
    """A point with the ends of its interval, and whether it is on the front."""

    label: str
    colour: int
    x: float
    y: float
    interval: tuple[float, float]
    front: bool


Place = tuple[float, float]
_MOST_NAMED = 8
"""Points that are all named; of more those on the front."""
_WIDE_RANGE, _NEAR = 30.0, 0.4
"""Costs that differ by more, none of them 0, are on a logarithmic axis; alike ones on one without 0."""


def scatter(title: str, labels: tuple[str, str], units: Sequence[Unit], points: Sequence[Point]) -> Markup:
    """Return points by cost and score: those on the front outlined, and joined by a line.

    Parameters
    ----------
    title : str
    labels : tuple of str
        Of both axes.
    units : sequence of Unit
        Of the costs.
    points : sequence of Point
    """
    chart = Chart(title)
    shown = [point for point in points if not math.isnan(point.x + point.y)]
    name, size = unit_of(max((point.x for point in shown), default=0.0), units)
    costs = [point.x / size for point in shown]
    log = bool(costs) and min(costs) > 0 and max(costs) > _WIDE_RANGE * min(costs)
    near = bool(costs) and min(costs) > _NEAR * max(costs)
    x = scale(costs, chart.left + 4, chart.right, log=log, zero=not near)
    y = scale([end for point in shown for end in point.interval], chart.bottom, chart.top)
    places = [(float(x(point.x / size)), float(y(point.y))) for point in shown]
    chart.grid(x, y, f"{labels[0]} ({name})", labels[1])
    on_front = (place for point, place in zip(shown, places, strict=True) if point.front)
    front = sorted(on_front, key=itemgetter(0))
    if len(front) > 1:
        steps = "".join(f"H{right:.1f}V{down:.1f}" for right, down in front[1:])
        chart.path("front", f"M{front[0][0]:.1f} {front[0][1]:.1f}{steps}")
    for number, (point, place) in enumerate(zip(shown, places, strict=True)):
        tip = f"{point.label}: {point.y:.4g}, {human(point.x, units)}{', on the front' * point.front}"
        covered = sum(_near(place, other) for other in places[number + 1 :])
        _point(chart, point, place, y, covered, tip)
    _labels(chart, shown, places, [point.front or len(shown) <= _MOST_NAMED for point in shown])
    names = ", ".join(point.label for point in shown if point.front)
    return chart.figure(f"{title}: {len(shown)} points, on the front {names}")


def _near(one: Place, other: Place) -> bool:
    return abs(one[0] - other[0]) < 3 and abs(one[1] - other[1]) < 3


def _point(chart: Chart, point: Point, place: Place, y: Scale, covered: int, tip: str) -> None:
    """Draw a point with its interval; one that others lie upon is larger, so that it shows."""
    low, high = (float(y(end)) for end in point.interval)
    with chart.series(point.label):
        chart.path(f"line c{point.colour}", f"M{place[0]:.1f} {low:.1f}V{high:.1f}")
        chart.dot(f"dot c{point.colour}{' on-front' * point.front}", *place, tip, 4 + 2.5 * covered)


def _labels(chart: Chart, points: Sequence[Point], places: Sequence[Place], named: Sequence[bool]) -> None:
    """Draw the names of points, moved apart where they would cover each other, inside the chart's sides.

    What all names begin with is left out.
    """
    taken = [(x - 5, x + 5, y + 3.5) for x, y in places]
    common = min((point.label for point in points), key=len, default="")
    begin_alike = all(point.label == common or point.label.startswith(f"{common}, ") for point in points)
    found = compress(zip(points, places, strict=True), named)
    for point, (x, y) in sorted(found, key=lambda pair: pair[1][1]):
        label = point.label.removeprefix(f"{common}, " * begin_alike)
        wide, level = 5.6 * len(label), y + 3.5
        left = max(chart.left, x - 8 - wide) if x + 8 + wide > chart.right else x + 8
        while any(
            abs(level - other) < 11 and left < end and begin < left + wide for begin, end, other in taken
        ):
            level += 2
        taken.append((left, left + wide, level))
        near = max(left, min(x, left + wide))
        with chart.series(point.label):
            if abs(level - 3.5 - y) > 6:
                chart.path("axis", f"M{x:.1f} {y:.1f}L{near:.1f} {level - 4:.1f}")
            chart.text(left, level, label, "small")
