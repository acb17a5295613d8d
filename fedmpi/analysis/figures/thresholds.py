"""Accuracy by the thresholds of GCFL's criteria (GCFL, Figure 2), as heatmaps.

The paper's accuracies are those its code reports, maxima over test accuracies
at split points; the last round's stand beside them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from pydantic import Field

from fedmpi.analysis.cells import Cell, Float, by_rule, cells, seeds_text, titled
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scores import splitting_groups
from fedmpi.config.tables import look_up
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.metrics.clients import splits
from fedmpi.store.reader import Run

_EPS1, _EPS2 = "algorithm.eps1", "algorithm.eps2"
_COLOURS = "cividis"
_DARK = 0.55
"""Below this share of the colour scale a number is written in white."""


class Options(KindOptions):
    """Options of ``thresholds``.

    Attributes
    ----------
    rules : tuple of str
        Selection rules, a column of panels each: ``last round``, ``best by validation``, ``as published``.
    published : tuple of float or None
        A pair (eps1, eps2) to frame: that of the paper.
    """

    rules: tuple[Literal["last round", "best by validation", "as published"], ...] = Field(
        ("last round", "as published"), min_length=1
    )
    published: tuple[float, float] | None = None


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a row of heatmaps per algorithm and a column per rule: eps1 across, eps2 up."""
    found = cells(runs)
    for cell in found:
        if look_up(cell.config, _EPS1) is None or look_up(cell.config, _EPS2) is None:
            raise BadInput(f"thresholds: {cell.algorithm} has no eps1 and eps2; leave its runs out")
    rows = titled(found, lambda cell: cell.name, _EPS1, _EPS2)
    count = len(options.rules)
    figure, axes = style.panels(len(rows) * count, columns=count, height=2.5)
    grids = [_grid(row, rule) for _, row in rows for rule in options.rules]
    shown = np.concatenate([grid[~np.isnan(grid)] for grid in grids])
    scale = Normalize(shown.min(), max(shown.max(), shown.min() + 0.1))
    titles = [f"{heading}: {rule}" for heading, _ in rows for rule in options.rules]
    for place, (axis, grid, title) in enumerate(zip(axes, grids, titles, strict=True)):
        _panel(axis, rows[place // count][1], grid, scale, options)
        axis.set_title(title)
    colours = ScalarMappable(scale, _COLOURS)
    figure.colorbar(colours, ax=axes, shrink=0.6, label=f"test {found[0].metric.heading}")
    return style.add_caption(figure, _caption(found, options))


def _caption(found: Sequence[Cell[Run]], options: Options) -> str:
    text = f"Mean over clients of the test {found[0].metric.title}"
    text += f" ({seeds_text(cell.runs for cell in found)})"
    if "as published" in options.rules:
        text += "; as published: each client's largest at a split of its cluster or at the end, "
        text += "chosen on test data"
    text += ". Hatched: no cluster ever split, so the run is FedAvg. Solid frame: the largest of a panel"
    return f"{text}; dashed frame: the published pair." if options.published else f"{text}."


def _thresholds(row: Sequence[Cell[Run]]) -> list[list[float]]:
    """Return the values of eps1 and those of eps2."""
    return [sorted({float(look_up(cell.config, eps)) for cell in row}) for eps in (_EPS1, _EPS2)]


def _places(row: Sequence[Cell[Run]]) -> dict[tuple[int, int], Cell[Run]]:
    """Return the cells by their places in a heatmap: (row of eps2, column of eps1)."""
    first, second = _thresholds(row)
    pairs = [(float(look_up(cell.config, _EPS1)), float(look_up(cell.config, _EPS2))) for cell in row]
    return {
        (second.index(up), first.index(across)): cell for (across, up), cell in zip(pairs, row, strict=True)
    }


def _grid(row: Sequence[Cell[Run]], rule: str) -> Float:
    """Return the mean over clients [eps2, eps1]; NaN where a pair was not run."""
    first, second = _thresholds(row)
    grid = np.full((len(second), len(first)), np.nan)
    for place, cell in _places(row).items():
        grid[place] = np.nanmean(cell.over_seeds(by_rule(rule)))
    return grid


def _panel(axis: Axes, row: Sequence[Cell[Run]], grid: Float, scale: Normalize, options: Options) -> None:
    first, second = _thresholds(row)
    axis.imshow(grid, origin="lower", aspect="auto", cmap=_COLOURS, norm=scale)
    axis.grid(visible=False)
    axis.set_xticks(range(len(first)), [f"{value:g}" for value in first])
    axis.set_yticks(range(len(second)), [f"{value:g}" for value in second])
    axis.set(xlabel="eps1", ylabel="eps2")
    for (up, across), cell in _places(row).items():
        ink = _ink(grid[up, across], scale)
        axis.text(across, up, f"{grid[up, across]:.1f}", ha="center", va="center", color=ink)
        if not any(len(splits(splitting_groups(run))) for run in cell.runs.values()):
            _frame(axis, up, across, 0.5, gid="no split", hatch="///", edgecolor="#ffffff66", linewidth=0)
    for up, across in zip(*np.nonzero(grid == np.nanmax(grid)), strict=True):
        _frame(axis, up, across, 0.44, gid="largest", edgecolor=COLOURS[1], linewidth=1.6)
    if options.published and options.published[0] in first and options.published[1] in second:
        up, across = second.index(options.published[1]), first.index(options.published[0])
        ink = _ink(grid[up, across], scale)
        _frame(axis, up, across, 0.38, gid="published", edgecolor=ink, linewidth=1.0, linestyle="--")


def _ink(value: float, scale: Normalize) -> str:
    """Return the colour of what is drawn on the colour of a value."""
    return "white" if scale(value) < _DARK else "black"


def _frame(axis: Axes, up: int, across: int, half: float, **look: Any) -> None:
    """Add a rectangle of so much to each side of a place."""
    axis.add_patch(Rectangle((across - half, up - half), 2 * half, 2 * half, fill=False, **look))
