"""A chart of points by cost and score, with the front of those that no other beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from fedmpi.analysis.page.axes import HEIGHT, Box, Scale, joined, scale, svg, text
from fedmpi.analysis.page.charts import panel
from fedmpi.analysis.page.templates import part
from fedmpi.analysis.page.units import Unit, human, unit_of


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
    parts: list[Markup | str] = [box.grid(x, y, f"{axes.x_label} ({name})", axes.y_label), _front(placed)]
    for place, each in enumerate(placed):
        tip = f"{each.point.label}: {each.point.y:.4g}, {human(each.point.x, axes.units)}"
        parts += _drawn(each, y, sum(each.covers(other) for other in placed[place + 1 :]), tip)
    parts += _labels(placed, box)
    front = ", ".join(point.label for point in shown if point.front)
    label = f"{axes.title}: {len(shown)} points, on the front {front}"
    return panel(axes.title, svg(joined(parts), HEIGHT, label))


@dataclass(frozen=True)
class _Placed:
    """A point and its place in the chart."""

    point: Point
    x: float
    y: float

    def covers(self, other: _Placed) -> bool:
        return abs(self.x - other.x) < 3 and abs(self.y - other.y) < 3


def _front(placed: Sequence[_Placed]) -> str:
    first, *others = sorted((each for each in placed if each.point.front), key=lambda each: each.x)
    steps = "".join(f"H{each.x:.1f}V{each.y:.1f}" for each in others)
    return f'<path class="front" d="M{first.x:.1f} {first.y:.1f}{steps}"/>' if steps else ""


def _drawn(each: _Placed, y: Scale, covered: int, tip: str) -> list[Markup | str]:
    """Return a point with its interval; one that others lie upon is larger, so that it shows."""
    low, high = (float(y(end)) for end in each.point.interval)
    colour, outlined = f"c{each.point.colour}", each.point.front
    return [
        f'<g data-series="{escape(each.point.label)}">',
        f'<path class="line {colour}" d="M{each.x:.1f} {low:.1f}V{high:.1f}"/>',
        part("dot")(
            f"dot {colour}{' on-front' * outlined}",
            each.x,
            each.y,
            f"{tip}{', on the front' * outlined}",
            4 + 2.5 * covered,
        ),
        "</g>",
    ]


def _labels(placed: Sequence[_Placed], box: Box) -> list[Markup | str]:
    """Return the points' names, moved apart where they would cover each other."""
    taken = [(each.x - 5, each.x + 5, each.y + 3.5) for each in placed]
    parts: list[Markup | str] = []
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
        parts += [f'<g data-series="{escape(name)}">', joint * moved, text(left, level, name, "small")]
        parts.append("</g>")
    return parts
