"""FedGraphNN's figures: how uneven a partition is, and the scores of every run of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS, algorithm_name, dataset_name
from fedmpi.analysis.scores import curve
from fedmpi.analysis.winners import best_round, winners
from fedmpi.config.tables import look_up
from fedmpi.store.reader import Run

_BY = ("dataset.name", "model.name", "algorithm.name")


class SampleCounts(Kind):
    """Training examples of every client: how uneven a partition is (FedGraphNN, Figures 5 to 8).

    Attributes
    ----------
    columns : int
        Panels side by side.
    """

    columns: int = 3

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return one panel of bars per partition; runs that share one are drawn once."""
        drawn = {_partition(run): run for run in runs}
        figure, axes = style.panels(len(drawn), self.columns, height=1.9)
        for axis, (title, run) in zip(axes, drawn.items(), strict=True):
            sizes = run.partition["sizes"][:, 0]
            kind = "ego-networks" if run.config["dataset"].get("egos") else "examples"
            bars = axis.bar(np.arange(len(sizes)), sizes, color=COLOURS[0], width=0.7)
            axis.bar_label(bars, fontsize=6)
            axis.set(title=title, xlabel="client", ylabel=f"training {kind}")
            axis.set_xticks(np.arange(len(sizes)))
            axis.grid(visible=False, axis="x")
        text = "Training examples of each client; validation and test examples are dealt out alike."
        return style.add_caption(figure, text)


class Scores(SampleCounts):
    """Test score by round of every run of a sweep, the winner marked (FedGraphNN, Figures 10 and 11)."""

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return one panel per dataset, model and algorithm with a line per run."""
        panels = grouped(runs, lambda run: tuple(look_up(run.config, key) for key in _BY))
        figure, axes = style.panels(len(panels), self.columns, height=2.0)
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
        text = "Each line is one choice of hyper-parameters. Coloured: the one with the best validation "
        text += "score in any round, which the dot marks. Dotted: the best test score of any line and round, "
        return style.add_caption(figure, f"{text}what choosing on test data reports.")


def _partition(run: Run) -> str:
    """Return what a partition is called."""
    options = run.config["partition"]
    spread = "alpha" in options and options.get("allocation", "quantity") != "uniform"
    alpha = f", alpha {options['alpha']:g}" if spread else ""
    return f"{dataset_name(str(run.config['dataset']['name']))}: {len(run.clients)} clients{alpha}"
