"""What privacy costs: the headline against epsilon, the privacy that a run has spent at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedmpi.analysis.cells import Cell, by_rule, cells, seeds_text, titled
from fedmpi.analysis.figures import KindOptions as Options
from fedmpi.analysis.figures import style
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scores import trust
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.store.reader import Run


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a panel per dataset and algorithm: epsilon across, the headline up; a line without noise."""
    found = cells(runs)
    if not any(_epsilon(cell) for cell in found):
        raise BadInput("epsilon: no run has spent any; draw runs with privacy = central or distributed")
    rows = titled(found, lambda cell: cell.name, "privacy")
    figure, axes = style.draw_panels(rows, _panel, columns=3, height=2.5, sharey=True)
    axes[0].set_ylabel(f"test {found[0].metric.heading}")
    style.add_legend(figure, axes)
    seeds = seeds_text(cell.runs for cell in found)
    text = f"Mean over clients of the test {found[0].metric.title}, last round ({seeds})"
    text = f"{text}; bars: 95 % interval over seeds. A smaller epsilon is more private."
    return style.add_caption(figure, text)


def _epsilon(cell: Cell[Run]) -> float:
    """Return what the runs of a cell have spent; 0 for runs without noise, whose epsilon has no bound."""
    return trust(cell.first).get("epsilon", 0.0)


def _panel(axis: Axes, row: Sequence[Cell[Run]]) -> None:
    noisy = sorted((cell for cell in row if _epsilon(cell)), key=_epsilon)
    means = [_mean(cell) for cell in noisy]
    spent, halves = [_epsilon(cell) for cell in noisy], np.nan_to_num([mean.half for mean in means])
    look: dict[str, Any] = {"marker": "o", "capsize": 2, "color": COLOURS[0], "label": "with noise"}
    axis.errorbar(spent, [mean.mean for mean in means], halves, **look)
    axis.set(xlabel="epsilon", xscale="log")
    for number, cell in enumerate(cell for cell in row if not _epsilon(cell)):
        name = str(cell.config.get("privacy", {}).get("name", "none"))
        label = "clipped, without noise" if name == "clipping" else "without privacy"
        axis.axhline(_mean(cell).mean, color=COLOURS[1 + number], linestyle="dashed", label=label)


def _mean(cell: Cell[Run]) -> Estimate:
    """Return the mean over seeds of the mean over clients."""
    return estimate([float(np.nanmean(by_rule("last round")(run))) for run in cell.runs.values()])
