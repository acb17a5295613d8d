"""Charts of the page, in SVG: their scales, ticks, axes and elements.

A chart is `WIDTH` units wide; the page's grid scales it to its column. Colours, dashes and fonts are classes
of the page's style sheet: `c0` to `c7` colour by ``--series``, `d0` to `d6` are dashes.

Why no library draws them: a page is one small file, readable without script, written in a second or two.
Vega-Lite (`vl-convert-python` 1.9, 84 MB installed) needs each chart twice, drawn and as data, and a bundle
of scripts of 0.9 MB, which takes 4 s of processor time to make. With its line charts alone in Vega-Lite, a
page about 36 runs of 200 rounds had 3.3 MB in place of 1.4. Matplotlib's SVG of eight lines with bands has
120 kB and takes 0.15 s; a page may have hundreds of charts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

Float = npt.NDArray[np.float64]

WIDTH, HEIGHT = 400.0, 240.0
COLOURS, DASHES = 8, 7
"""How many of each the style sheet has."""

_TICKS = 7
_FINE = 10
"""Path coordinates are whole tenths of a unit: short to write, finer than a screen shows."""


@dataclass(frozen=True)
class Scale:
    """Maps values between `low` and `high` to positions between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False
    """Whether only whole numbers get a tick, as of rounds."""

    def __call__(self, values: npt.ArrayLike) -> Float:
        """Return positions; NaN for what is not finite or, on a logarithmic scale, not above 0."""
        given = np.asarray(values, np.float64)
        low, high = self.low, self.high
        if self.log:
            given = np.log10(given, where=given > 0, out=np.full(given.shape, np.nan))
            low, high = math.log10(low), math.log10(high)
        given = np.where(np.isfinite(given), given, np.nan)
        return np.asarray(self.start + (given - low) / (high - low) * (self.end - self.start), np.float64)

    @property
    def ends(self) -> list[float]:
        """Its lowest and highest value, and their positions."""
        return [self.low, self.high, self.start, self.end]

    def ticks(self) -> list[float]:
        """Return round values within the range, three to seven."""
        if self.log:
            return _log_ticks(self.low, self.high)
        step = max(_round_step((self.high - self.low) / _TICKS), float(self.whole))
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scale(values: Iterable[float], start: float, end: float, log: bool = False, zero: bool = False) -> Scale:
    """Return a scale over finite values with some air around them.

    Parameters
    ----------
    values : iterable of float
    start, end : float
        Places of its ends, in units of the chart.
    log : bool
        Whether it is logarithmic; values of 0 and below are left out.
    zero : bool
        Whether it begins at 0.
    """
    given = np.asarray(list(values), np.float64)
    given = given[np.isfinite(given) & ((given > 0) | (not log))]
    if not len(given):
        given = np.array([1.0, 10.0] if log else [0.0, 1.0])
    low, high = float(given.min()), float(given.max())
    if log:
        margin = max((high / low) ** 0.04, 1.02)
        return Scale(low / margin, high * margin, start, end, log=True)
    low = min(low, 0.0) if zero else low
    air = 0.05 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low if zero and low == 0 else low - air, high + air, start, end)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        found = [factor * 10.0**power for power in decades for factor in factors]
        found = [value for value in found if low <= value <= high]
        if len(found) >= 3:
            return found[:: math.ceil(len(found) / 7)]
    return found


def shown(value: float) -> str:
    """Return a tick's text."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"


@dataclass
class Chart:
    """A chart under its title: the rectangle inside its axes, and the elements drawn so far.

    Attributes
    ----------
    title : str
    left, right, top, bottom : float
        Of the rectangle, in units of the chart.
    below : float
        Room for what stands below it.
    """

    title: str
    left: float = 52.0
    right: float = WIDTH - 8.0
    top: float = 8.0
    bottom: float = HEIGHT - 34.0
    below: float = 34.0
    _parts: list[str] = field(default_factory=list)

    def grid(self, x: Scale | None, y: Scale | None, x_label: str = "", y_label: str = "") -> None:
        """Draw grid lines, tick labels and axis labels, of a scale that is None none."""
        for value in y.ticks() if y is not None else []:
            assert y is not None
            place = float(y(value))
            self.path("grid", f"M{self.left} {place:.1f}H{self.right}")
            self.text(self.left - 5, place + 4, shown(value), "tick end")
        if x is not None:
            with self._group('class="across"'):
                for value in x.ticks():
                    place = float(x(value))
                    self.path("axis", f"M{place:.1f} {self.bottom}v4")
                    self.text(place, self.bottom + 15, shown(value), "tick middle")
                self.text((self.left + self.right) / 2, self.bottom + 29, x_label, "label middle")
        self.path("axis", f"M{self.left} {self.bottom}H{self.right}")
        if y_label:
            middle = (self.top + self.bottom) / 2
            where = f'x="10" y="{middle:.1f}" transform="rotate(-90 10 {middle:.1f})"'
            self._parts.append(f'<text class="label middle" {where}>{escape(y_label)}</text>')

    def text(self, x: float, y: float, content: str, kind: str) -> None:
        """Draw a text of some classes; its baseline is at y."""
        self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>')

    def path(self, kind: str, data: str, tip: str = "") -> None:
        """Draw a path, in units of the chart; `tip` is shown under the pointer."""
        self._mark("path", kind, f'd="{data}"', tip)

    def fine(self, kind: str, data: str, tip: str = "", series: str = "", more: str = "") -> None:
        """Draw what `path` or `area` returned; nothing for no data."""
        if data:
            self._mark("path", kind, f'{more}transform="scale(.1)" d="{data}"', tip, series)

    def dot(self, kind: str, x: float, y: float, tip: str, radius: float = 2.4) -> None:
        """Draw a circle."""
        self._mark("circle", kind, f'cx="{x:.1f}" cy="{y:.1f}" r="{radius}"', tip)

    def rect(
        self,
        kind: str,
        x: float,
        y: float,
        size: tuple[float, float],
        tip: str,
        series: str = "",
        faded: str = "",
    ) -> None:
        """Draw a rectangle of a width and a height, its opacity `faded`."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
        self._mark("rect", kind, place + (f' fill-opacity="{faded}"' if faded else ""), tip, series)

    def _mark(self, tag: str, kind: str, attributes: str, tip: str = "", series: str = "") -> None:
        named = f' data-series="{escape(series)}"' if series else ""
        end = f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"
        self._parts.append(f'<{tag} class="{kind}"{named} {attributes}{end}')

    @contextmanager
    def _group(self, more: str) -> Iterator[None]:
        self._parts.append(f"<g {more}>")
        yield
        self._parts.append("</g>")

    def series(self, label: str) -> AbstractContextManager[None]:
        """Draw what the page's legend hides and shows together."""
        return self._group(f'data-series="{escape(label)}"')

    def figure(self, label: str, note: str = "", more: str = "") -> Markup:
        """Return the chart.

        Parameters
        ----------
        label : str
            What it shows, for those who do not see it.
        note : str
            Stands below it.
        more : str
            Further attributes.
        """
        size = f'viewBox="0 0 {WIDTH:.0f} {self.bottom + self.below:.0f}"'
        drawing = f'<svg {size} role="img" aria-label="{escape(label)}" {more}>{"".join(self._parts)}</svg>'
        below = f'<p class="note">{escape(note)}.</p>' if note else ""
        caption = f"<figcaption>{escape(self.title)}</figcaption>"
        return Markup(f'<figure class="panel">{caption}{drawing}{below}</figure>')


def path(x: Float, y: Float) -> str:
    """Return the path data of a line in tenths of a unit, through the points that have a value."""
    present = np.isfinite(x) & np.isfinite(y)
    points = np.column_stack([x, y])[present]
    if not len(points):
        return ""
    fine = np.rint(points * _FINE).astype(int)
    steps = " ".join(f"{right} {down}" for right, down in np.diff(fine, axis=0).tolist())
    return f"M{fine[0, 0]} {fine[0, 1]}{'l' + steps if steps else 'h0'}".replace(" -", "-")


def area(x: Float, low: Float, high: Float) -> str:
    """Return the path data, in tenths of a unit, of the area between two lines without missing values."""
    present = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    if present.sum() < 2:
        return ""
    across = np.concatenate([x[present], x[present][::-1]])
    return path(across, np.concatenate([high[present], low[present][::-1]])) + "z"


def thinned(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most `most` evenly spread indices of `count`, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(np.int64))
