"""Scores by a setting: GCFL's thresholds as heatmaps, and what privacy costs."""

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

from fedmpi.analysis.cells import Cell, by_rule, cells, seeds_text, titled
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scores import splitting_groups, trust
from fedmpi.config.tables import look_up
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.metrics.clients import splits
from fedmpi.store.reader import Run

_EPS = ("algorithm.eps1", "algorithm.eps2")
_COLOURS = "cividis"
_DARK = 0.55
"""Below this share of the colour scale a number is written in white."""


_Pair = tuple[float, float]
"""Values of eps1 and eps2."""


class Thresholds(Kind):
    """Accuracy by the thresholds of GCFL's criteria (GCFL, Figure 2), as heatmaps.

    The paper's accuracies are those its code reports, maxima over test accuracies at split points; the last
    round's stand beside them here.

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

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return a row of heatmaps per algorithm and a column per rule: eps1 across, eps2 up."""
        found = cells(runs)
        for cell in found:
            if any(look_up(cell.config, eps) is None for eps in _EPS):
                raise BadInput(f"thresholds: {cell.algorithm} has no eps1 and eps2; leave its runs out")
        rows = titled(found, lambda cell: cell.name, *_EPS)
        figure, axes = style.panels(len(rows) * len(self.rules), columns=len(self.rules), height=2.5)
        maps = [(heading, rule, row, _means(row, rule)) for heading, row in rows for rule in self.rules]
        shown = np.concatenate([list(means.values()) for *_, means in maps])
        least = np.nanmin(shown)
        scale = Normalize(least, max(np.nanmax(shown), least + 0.1))
        for axis, (heading, rule, row, means) in zip(axes, maps, strict=True):
            self._panel(axis, row, means, scale)
            axis.set_title(f"{heading}: {rule}")
        metric = found[0].metric
        colours = ScalarMappable(scale, _COLOURS)
        figure.colorbar(colours, ax=axes, shrink=0.6, label=f"test {metric.heading}")
        text = f"Mean over clients of the test {metric.title} ({seeds_text(cell.runs for cell in found)})"
        if "as published" in self.rules:
            text += "; as published: each client's largest at a split of its cluster or at the end, "
            text += "chosen on test data"
        text += ". Hatched: no cluster ever split, so the run is FedAvg. Solid frame: the largest of a panel"
        text += "; dashed frame: the published pair." if self.published else "."
        return style.add_caption(figure, text)

    def _panel(
        self, axis: Axes, row: Sequence[Cell[Run]], means: dict[_Pair, float], scale: Normalize
    ) -> None:
        first, second = (sorted(set(values)) for values in zip(*means, strict=True))
        grid = np.array([[means.get((across, up), np.nan) for across in first] for up in second])
        axis.imshow(grid, origin="lower", aspect="auto", cmap=_COLOURS, norm=scale)
        axis.grid(visible=False)
        axis.set_xticks(range(len(first)), [f"{value:g}" for value in first])
        axis.set_yticks(range(len(second)), [f"{value:g}" for value in second])
        axis.set(xlabel="eps1", ylabel="eps2")

        def ink(up: int, across: int) -> str:
            return "white" if scale(grid[up, across]) < _DARK else "black"

        def frame(up: int, across: int, half: float, **look: Any) -> None:
            corner = (across - half, up - half)
            axis.add_patch(Rectangle(corner, 2 * half, 2 * half, fill=False, **look))

        for cell, pair in zip(row, means, strict=True):
            up, across = second.index(pair[1]), first.index(pair[0])
            look: dict[str, Any] = {"ha": "center", "va": "center", "color": ink(up, across)}
            axis.text(across, up, f"{grid[up, across]:.1f}", **look)
            if not any(len(splits(splitting_groups(run))) for run in cell.runs.values()):
                frame(up, across, 0.5, gid="no split", hatch="///", edgecolor="#ffffff66", linewidth=0)
        for up, across in zip(*np.nonzero(grid == np.nanmax(grid)), strict=True):
            frame(up, across, 0.44, gid="largest", edgecolor=COLOURS[1], linewidth=1.6)
        if self.published and self.published[0] in first and self.published[1] in second:
            up, across = second.index(self.published[1]), first.index(self.published[0])
            frame(up, across, 0.38, gid="published", edgecolor=ink(up, across), linewidth=1.0, linestyle="--")


def _means(row: Sequence[Cell[Run]], rule: str) -> dict[_Pair, float]:
    """Return the mean over clients of each cell, by its eps1 and eps2."""
    found = {}
    for cell in row:
        first, second = (float(look_up(cell.config, eps)) for eps in _EPS)
        found[first, second] = float(np.nanmean(cell.over_seeds(by_rule(rule))))
    return found


class Epsilon(Kind):
    """What privacy costs: the headline against epsilon, the privacy that a run has spent at its end."""

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return a panel per dataset and algorithm: epsilon across, the headline up; a line without noise."""
        found = cells(runs)
        if not any(_epsilon(cell) for cell in found):
            raise BadInput("epsilon: no run has spent any; draw runs with privacy = central or distributed")
        rows = titled(found, lambda cell: cell.name, "privacy")
        figure, axes = style.draw_panels(rows, _over_epsilon, columns=3, height=2.5, sharey=True)
        axes[0].set_ylabel(f"test {found[0].metric.heading}")
        style.add_legend(figure, axes)
        seeds = seeds_text(cell.runs for cell in found)
        text = f"Mean over clients of the test {found[0].metric.title}, last round ({seeds})"
        text = f"{text}; bars: 95 % interval over seeds. A smaller epsilon is more private."
        return style.add_caption(figure, text)


def _epsilon(cell: Cell[Run]) -> float:
    """Return what the runs of a cell have spent; 0 for runs without noise, whose epsilon has no bound."""
    return trust(cell.first).get("epsilon", 0.0)


def _over_epsilon(axis: Axes, row: Sequence[Cell[Run]]) -> None:
    noisy = sorted((cell for cell in row if _epsilon(cell)), key=_epsilon)
    means = [_mean(cell) for cell in noisy]
    spent, halves = [_epsilon(cell) for cell in noisy], np.nan_to_num([mean.half for mean in means])
    look: dict[str, Any] = {"marker": "o", "capsize": 2, "color": COLOURS[0], "label": "with noise"}
    axis.errorbar(spent, [mean.mean for mean in means], halves, **look)
    axis.set(xlabel="epsilon", xscale="log")
    for number, cell in enumerate(cell for cell in row if not _epsilon(cell)):
        name = look_up(cell.config, "privacy.name")
        label = "clipped, without noise" if name == "clipping" else "without privacy"
        axis.axhline(_mean(cell).mean, color=COLOURS[1 + number], linestyle="dashed", label=label)


def _mean(cell: Cell[Run]) -> Estimate:
    """Return the mean over seeds of the mean over clients."""
    return estimate([float(np.nanmean(by_rule("last round")(run))) for run in cell.runs.values()])
