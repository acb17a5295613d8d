"""Charts of single numbers: violins, heat maps, stacked bars, points with their front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.page.axes import (
    COLOURS,
    HEIGHT,
    WIDTH,
    Box,
    Float,
    Scale,
    drawn,
    group,
    panel,
    path,
    scale,
    text,
)
from fedmpi.analysis.page.sections import part
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


def violins(title: str, y_label: str, groups: Sequence[Violin]) -> Markup:
    """Return a violin per group, its values as dots and a bar at their mean; a line at 0."""
    box = Box(bottom=HEIGHT - 26.0)
    ends = [end for each in groups for end in _reach(each.values)]
    y = scale([0.0, *ends], box.bottom, box.top)
    wide = (box.right - box.left) / max(len(groups), 1)
    parts = [box.grid(None, y, "", y_label)]
    parts.append(Markup(f'<path class="zero" d="M{box.left} {float(y(0)):.1f}H{box.right}"/>'))
    for place, each in enumerate(groups):
        middle = box.left + (place + 0.5) * wide
        low = box.bottom + (15.0 if len(groups) < 6 or place % 2 == 0 else 25.0)
        violin = _violin(each, middle, min(wide * 0.42, 42.0), y)
        parts.append(group(each.label, *violin, text(middle, low, each.label, "tick middle")))
    return panel(title, parts, HEIGHT, f"{title}: {y_label} of {len(groups)} groups")


def _violin(each: Violin, middle: float, half: float, y: Scale) -> list[Markup]:
    colour = f"c{each.colour % COLOURS}"
    parts = []
    if np.std(each.values) > 0:
        levels, density = _density(each.values)
        sides = np.concatenate([middle + half * density, (middle - half * density)[::-1]])
        outline = path(sides, y(np.concatenate([levels, levels[::-1]]))) + "z"
        parts.append(drawn(outline, f"band {colour}"))
    shift = ((np.arange(len(each.values)) * _GOLDEN) % 1.0 - 0.5) * half
    for name, value, right in zip(each.names, each.values, shift, strict=True):
        parts.append(part("dot")(f"dot {colour}", middle + right, float(y(value)), f"{name}: {value:+.2f}"))
    mean = float(each.values.mean())
    tip = f"{each.label}: mean {mean:+.2f}"
    return [*parts, part("mean")(middle - half, float(y(mean)), 2 * half, tip)]


def _width(values: Float) -> float:
    """Return the width of the kernels of a density, by Scott's rule."""
    return float(np.std(values) * len(values) ** -0.2)


def _reach(values: Float) -> tuple[float, float]:
    """Return how far a violin reaches."""
    return float(values.min()) - _width(values), float(values.max()) + _width(values)


def _density(values: Float) -> tuple[Float, Float]:
    """Return levels and a Gaussian kernel density over them, scaled to at most 1."""
    width = _width(values)
    levels = np.linspace(*_reach(values), 40)
    density = np.exp(-0.5 * ((levels[:, None] - values) / width) ** 2).sum(axis=1)
    return levels, density / density.max()


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
    box = Box(left=52.0, top=22.0, bottom=22.0 + high * len(rows), height=30.0 + high * len(rows))
    wide = (box.right - box.left) / len(columns)
    most = values.max(axis=0, initial=0.0)
    parts, rect = list[Markup](), part("rect")
    for place, name in enumerate(columns):
        parts.append(text(box.left + (place + 0.5) * wide, 15.0, name, "small middle"))
    for line, row in enumerate(rows):
        top = box.top + line * high
        if high >= 9 or line % 4 == 0:
            parts.append(text(box.left - 5, top + high / 2 + 3.5, row, "small end"))
        for place, column in enumerate(columns):
            value = float(values[line, place])
            share = value / most[place] if most[place] > 0 else 0.0
            tip, depth = f"{row}, {column}: {value:.4g} {unit}", f"{0.06 + 0.6 * share:.2f}"
            left = box.left + place * wide
            parts.append(rect("heat", left + 0.5, top + 0.5, wide - 1, high - 1, tip, opacity=depth))
            if high >= 12:
                parts.append(text(left + wide / 2, top + high / 2 + 3.5, f"{value:.3g}", "value middle"))
    label = f"{title}: {unit} of {len(rows)} ranks in {len(columns)} phases"
    return panel(title, parts, box.height, label)


@dataclass(frozen=True)
class Bars:
    """Stacked bars, a row each.

    Attributes
    ----------
    rows, parts : sequence of str
        What the bars and what their pieces are called.
    values : float64 [rows, parts]
    notes : sequence of str
        What stands behind each bar.
    units : sequence of Unit
        Of the values; the axis has the one that fits.
    """

    rows: Sequence[str]
    parts: Sequence[str]
    values: Float
    notes: Sequence[str]
    units: Sequence[Unit]


def bars(title: str, x_label: str, given: Bars) -> Markup:
    """Return stacked horizontal bars."""
    longest = max((len(row) for row in given.rows), default=1)
    high = min(20.0, max(9.5, 400.0 / max(len(given.rows), 1)))
    bottom = 8.0 + high * len(given.rows)
    room = 6.2 * max((len(note) for note in given.notes), default=0)
    box = Box(left=min(20 + 5.8 * longest, 146.0), right=WIDTH - 8 - room, bottom=bottom, height=bottom + 34)
    most = float(given.values.sum(axis=1).max(initial=0.0))
    name, size = unit_of(most, given.units)
    x = scale([0.0, most / size], box.left, box.right, zero=True)
    parts = [box.grid(x, None, f"{x_label} ({name})".strip())]
    for line, row in enumerate(given.rows):
        top = box.top + line * high
        parts.append(text(box.left - 5, top + high / 2 + 3.5, row, "small end"))
        ends = x(np.concatenate([[0.0], np.cumsum(given.values[line])]) / size)
        parts += _pieces(given, line, ends, top, high)
        parts.append(text(float(ends[-1]) + 4, top + high / 2 + 3.5, given.notes[line], "small"))
    label = f"{title}: {len(given.rows)} bars of {', '.join(given.parts[:8])}"
    return panel(title, parts, box.height, label)


def _pieces(given: Bars, line: int, ends: Float, top: float, high: float) -> list[Markup]:
    total = float(given.values[line].sum())
    pieces, rect = list[Markup](), part("rect")
    for place, name in enumerate(given.parts):
        value = float(given.values[line, place])
        if not value or math.isnan(value):
            continue
        amount = f"{human(value, given.units)}, {100 * value / total:.0f} %"
        tip, faded = f"{given.rows[line]}, {name}: {amount}", "0.55" if place // COLOURS % 2 else ""
        kind, width = f"fill c{place % COLOURS}", max(ends[place + 1] - ends[place], 0.1)
        pieces.append(rect(kind, ends[place], top + 1, width, high - 2, tip, series=name, opacity=faded))
    return pieces


@dataclass(frozen=True)
class Point:
    """A point with the ends of its interval, and whether it is on the front."""

    label: str
    colour: int
    x: float
    y: float
    interval: tuple[float, float]
    front: bool


@dataclass(frozen=True)
class Scatter:
    """What a chart of points is called, and the units of its costs."""

    title: str
    x_label: str
    y_label: str
    units: Sequence[Unit]


_WIDE_RANGE, _NEAR = 30.0, 0.4
"""Costs that differ by more, none of them 0, are on a logarithmic axis; alike ones on one without 0."""


def scatter(axes: Scatter, points: Sequence[Point]) -> Markup:
    """Return points by cost and score: those on the front outlined, and joined by a line."""
    box = Box()
    shown = [point for point in points if not math.isnan(point.x + point.y)]
    name, size = unit_of(max((point.x for point in shown), default=0.0), axes.units)
    costs = [point.x / size for point in shown]
    log = bool(costs) and min(costs) > 0 and max(costs) > _WIDE_RANGE * min(costs)
    near = bool(costs) and min(costs) > _NEAR * max(costs)
    x = scale(costs, box.left + 4, box.right, log=log, zero=not near)
    y = scale([end for point in shown for end in point.interval], box.bottom, box.top)
    placed = [_Placed(point, float(x(point.x / size)), float(y(point.y))) for point in shown]
    parts = [box.grid(x, y, f"{axes.x_label} ({name})", axes.y_label), _front(placed)]
    for place, each in enumerate(placed):
        tip = f"{each.point.label}: {each.point.y:.4g}, {human(each.point.x, axes.units)}"
        parts.append(_drawn(each, y, sum(each.covers(other) for other in placed[place + 1 :]), tip))
    parts += _labels(placed, box)
    front = ", ".join(point.label for point in shown if point.front)
    return panel(axes.title, parts, HEIGHT, f"{axes.title}: {len(shown)} points, on the front {front}")


@dataclass(frozen=True)
class _Placed:
    """A point and its place in the chart."""

    point: Point
    x: float
    y: float

    def covers(self, other: _Placed) -> bool:
        return abs(self.x - other.x) < 3 and abs(self.y - other.y) < 3


def _front(placed: Sequence[_Placed]) -> Markup:
    first, *others = sorted((each for each in placed if each.point.front), key=lambda each: each.x)
    steps = "".join(f"H{each.x:.1f}V{each.y:.1f}" for each in others)
    return Markup(f'<path class="front" d="M{first.x:.1f} {first.y:.1f}{steps}"/>' if steps else "")


def _drawn(each: _Placed, y: Scale, covered: int, tip: str) -> Markup:
    """Return a point with its interval; one that others lie upon is larger, so that it shows."""
    low, high = (float(y(end)) for end in each.point.interval)
    colour, front = f"c{each.point.colour}", each.point.front
    kind, tip = f"dot {colour}{' on-front' * front}", f"{tip}{', on the front' * front}"
    interval = f'<path class="line {colour}" d="M{each.x:.1f} {low:.1f}V{high:.1f}"/>'
    return group(each.point.label, interval, part("dot")(kind, each.x, each.y, tip, 4 + 2.5 * covered))


def _labels(placed: Sequence[_Placed], box: Box) -> list[Markup]:
    """Return the points' names, moved apart where they would cover each other."""
    taken = [(each.x - 5, each.x + 5, each.y + 3.5) for each in placed]
    parts = []
    for each in sorted(placed, key=lambda each: each.y):
        name = each.point.label
        wide, level = 5.6 * len(name), each.y + 3.5
        left = each.x - 8 - wide if each.x + 8 + wide > box.right else each.x + 8
        while any(
            abs(level - other) < 11 and left < end and begin < left + wide for begin, end, other in taken
        ):
            level += 2
        taken.append((left, left + wide, level))
        near = max(left, min(each.x, left + wide))
        joint = f'<path class="axis" d="M{each.x:.1f} {each.y:.1f}L{near:.1f} {level - 4:.1f}"/>'
        moved = abs(level - 3.5 - each.y) > 6
        parts.append(group(name, joint * moved, text(left, level, name, "small")))
    return parts
