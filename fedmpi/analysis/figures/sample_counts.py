"""Training examples of every client: how uneven a partition is (FedGraphNN, Figures 5 to 8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS, dataset_name
from fedmpi.datasets.source import DataSource
from fedmpi.store.reader import Run


class Options(KindOptions):
    """Options of ``sample-counts`` and ``scores``.

    Attributes
    ----------
    columns : int
        Panels side by side.
    """

    columns: int = 3


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return one panel of bars per partition; runs that share one are drawn once."""
    drawn = {_title(run): run for run in runs}
    figure, axes = style.panels(len(drawn), options.columns, height=1.9)
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


def _title(run: Run) -> str:
    options = run.config["partition"]
    shown = [f"{len(run.clients)} clients"]
    if "alpha" in options and options.get("allocation", "quantity") != "uniform":
        shown.append(f"alpha {options['alpha']:g}")
    return f"{dataset_name(str(run.config['dataset']['name']))}: {', '.join(shown)}"
