"""Test score by round of every run of a sweep, the winner marked (FedGraphNN, Figures 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.figures import style
from fedmpi.analysis.figures.sample_counts import Options
from fedmpi.analysis.names import COLOURS, algorithm_name, dataset_name
from fedmpi.analysis.scores import curve
from fedmpi.analysis.winners import best_round, winners
from fedmpi.config.tables import look_up
from fedmpi.datasets.source import DataSource
from fedmpi.store.reader import Run

_BY = ("dataset.name", "model.name", "algorithm.name")


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return one panel per dataset, model and algorithm with a line per run."""
    panels = grouped(runs, lambda run: tuple(look_up(run.config, key) for key in _BY))
    figure, axes = style.panels(len(panels), options.columns, height=2.0)
    for axis, ((dataset, model, algorithm), members) in zip(axes, panels.items(), strict=True):
        (winner,) = winners(members, _BY)
        for run in sorted(members, key=lambda each: each.config == winner.config):
            test, won = curve(run.results, run.headline), run.config == winner.config
            rounds, best = np.flatnonzero(~np.isnan(test)), best_round(run)
            look: dict[str, Any] = {"color": COLOURS[1], "zorder": 3} if won else {"color": "#bbbbbb"}
            axis.plot(rounds + 1, test[rounds], linewidth=1.4 if won else 0.6, **look)
            if won and best >= 0:
                axis.plot(best + 1, test[best], "o", color=COLOURS[1], zorder=4)
        style.over_rounds(axis, f"{dataset_name(dataset)}, {model}, {algorithm_name(algorithm)}")
        axis.set_ylabel(f"{'test ' * winner.metric.held_out}{winner.metric.title}")
        axis.axhline(winner.test_maximum, color=COLOURS[0], linewidth=0.8, linestyle=":")
    return style.add_caption(
        figure,
        "Each line is one choice of hyper-parameters. Coloured: the one with the best validation score in "
        "any round, which the dot marks. Dotted: the best test score of any line and round, what choosing on "
        "test data reports.",
    )
