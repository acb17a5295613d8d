"""Accuracy by the thresholds of GCFL's criteria (GCFL, Figure 2).

The paper's accuracies are those its code reports, maxima over test accuracies
at split points; the last round's stand beside them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from fedmpi.analysis.cells import Cell, by_rule, cells, seeds_text, titled
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS, algorithm_name, dataset_name
from fedmpi.config.tables import look_up
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run

_EPS1, _EPS2 = "algorithm.eps1", "algorithm.eps2"


class Options(KindOptions):
    """Options of ``thresholds``.

    Attributes
    ----------
    rules : tuple of str
        Selection rules, a column of panels each: ``last round``, ``best by validation``, ``as published``.
    """

    rules: tuple[Literal["last round", "best by validation", "as published"], ...] = Field(
        ("last round", "as published"), min_length=1
    )


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a row of panels per algorithm and a column per rule: eps1 across, a line per eps2."""
    found = cells(runs)
    for cell in found:
        if look_up(cell.config, _EPS1) is None or look_up(cell.config, _EPS2) is None:
            raise BadInput(f"thresholds: {cell.algorithm} has no eps1 and eps2; leave its runs out")
    rows = titled(
        found, lambda cell: f"{algorithm_name(cell.algorithm)} on {dataset_name(cell.dataset)}", _EPS1, _EPS2
    )
    count = len(options.rules)
    figure, axes = style.panels(len(rows) * count, columns=count, height=2.5, sharex=True, sharey="row")
    for number, (heading, row) in enumerate(rows):
        for place, rule in enumerate(options.rules):
            axis = axes[number * count + place]
            _panel(axis, row, rule)
            axis.set_title(f"{heading}: {rule}")
        axes[number * count].set_ylabel(f"test {found[0].metric.heading}")
    for axis in axes[-count:]:
        axis.set_xlabel("eps1")
    figure.legend(*axes[0].get_legend_handles_labels(), title="eps2", loc="outside right center")
    seeds = seeds_text(cell.runs for cell in found)
    text = f"Mean over clients of the test {found[0].metric.title}"
    if "as published" in options.rules:
        text += (
            "; as published: a client's largest at splits of its cluster and at the end, chosen on test data"
        )
    style.add_caption(figure, f"{text} ({seeds}).")
    return figure


def _thresholds(row: Sequence[Cell[Run]], setting: str) -> list[float]:
    return sorted({float(look_up(cell.config, setting)) for cell in row})


def _panel(axis: Axes, row: Sequence[Cell[Run]], rule: str) -> None:
    axis.set_xticks(_thresholds(row, _EPS1))
    for number, eps2 in enumerate(_thresholds(row, _EPS2)):
        line = [cell for cell in row if float(look_up(cell.config, _EPS2)) == eps2]
        points = sorted(
            (float(look_up(cell.config, _EPS1)), float(np.nanmean(cell.over_seeds(by_rule(rule)))))
            for cell in line
        )
        axis.plot(*zip(*points, strict=True), label=f"{eps2:g}", **_look(number))


def _look(number: int) -> dict[str, Any]:
    """Return the look of a line: open markers of falling size, so that equal points stay visible."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": style.MARKERS[number % len(style.MARKERS)],
        "markersize": max(8.5 - 1.3 * number, 3.0),
        "markerfacecolor": "none",
        "linewidth": 0.9,
    }
