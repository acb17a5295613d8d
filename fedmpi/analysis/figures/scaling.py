"""Speedup and efficiency over ranks, with what the fitted model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, ScalarFormatter

from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scaling.points import point
from fedmpi.analysis.scaling.tables import Series, series
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run


class Options(KindOptions):
    """Options of ``scaling``.

    Attributes
    ----------
    with_server : bool
        Whether the server's rank counts among the ranks that efficiency divides by.
    predict : tuple of int
        Further numbers of ranks to predict.
    """

    with_server: bool = True
    predict: tuple[int, ...] = ()


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return speedup and efficiency of every case that was run on several numbers of ranks."""
    points = [found for found in map(point, runs) if found is not None]
    found = series(points, options.with_server, options.predict)
    if not found:
        raise BadInput("scaling: no case was run on several numbers of ranks, so there is nothing to draw")
    return picture(found)


def picture(found: Sequence[Series]) -> Figure:
    """Return two panels, a colour per case: measured as dots, predicted as a dashed line."""
    figure, (speedups, efficiencies) = style.panels(2, height=2.8)
    for number, each in enumerate(found):
        colour, marker = COLOURS[number % len(COLOURS)], style.MARKERS[number % len(style.MARKERS)]
        _series(speedups, efficiencies, each, colour, marker)
    counts = sorted({row.ranks for each in found for row in each.rows})
    for axis, label in ((speedups, "speedup"), (efficiencies, "efficiency")):
        axis.set_xscale("log", base=2)
        axis.set_xticks(counts)
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set(xlabel="ranks", ylabel=label)
    speedups.set_yscale("log", base=2)
    speedups.yaxis.set_major_formatter(ScalarFormatter())
    speedups.yaxis.set_minor_formatter(NullFormatter())
    efficiencies.axhline(1.0, color="#333333", linewidth=0.8, zorder=1)
    efficiencies.set_ylim(bottom=0)
    figure.legend(loc="outside upper center", ncols=min(2, len(found)))
    bases = ", ".join(dict.fromkeys(str(each.base.ranks) for each in found))
    counted = {each.mode: "counts" if each.with_server else "does not count" for each in found}
    server = "; ".join(f"{mode}: the server's rank {counts}" for mode, counts in counted.items())
    text = f"Against the fewest ranks measured ({bases}); {server}. Dots: measured, median "
    text += "over runs; bars: their extremes; dashed: the model fitted to them."
    return style.add_caption(figure, text)


def _series(speedups: Axes, efficiencies: Axes, each: Series, colour: str, marker: str) -> None:
    base = each.base
    assert base.seconds is not None
    ranks = np.array([row.ranks for row in each.rows])
    ideal = np.array([1.0 if each.mode == "weak" else row.counted / base.counted for row in each.rows])
    seconds = np.array([(row.seconds, row.low, row.high, row.predicted) for row in each.rows], np.float64)
    label = f"{each.mode}: {each.title}"
    for axis, divisors in ((speedups, np.ones(len(ideal))), (efficiencies, ideal)):
        middle, high, low, predicted = base.seconds / seconds.T / divisors
        there = ~np.isnan(middle)
        bars = np.array([middle - low, high - middle])[:, there]
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "elinewidth": 0.8}
        axis.errorbar(ranks[there], middle[there], bars, label=label if axis is speedups else None, **look)
        axis.plot(ranks, predicted, color=colour, linestyle=(0, (5, 2)), linewidth=0.9)
    speedups.plot(ranks, ideal, color="#999999", linewidth=0.7, zorder=1)
