"""Gradient norms by round, a colour per client, grouped by final cluster (GCFL, Figure 1).

The paper shows six clients under GCFL and GCFL+ and does not say which; here
they are an option. Its text calls the norms of the updates gradient norms, the
released code of GCFL+ looks at those of the last batch's gradient: `field`
chooses. Every split is marked, where the paper names one round in its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from pydantic import Field

from fedmpi.analysis.cells import Float, grouped, run_titles
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.figures.losses import smoothed
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scores import TOGETHER, is_together, splitting_groups
from fedmpi.config.tables import closest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.metrics.clients import splits
from fedmpi.store.reader import Run

_DEFAULT_CLIENTS = 6
_MOST_PANELS = 8
_MEANING = {
    "gradient_norm": "2-norm of the shared layers' gradient in the round's last batch",
    "delta_norm": "2-norm of the shared layers' update in the round",
}


class Options(KindOptions):
    """Options of ``gradient-norms``.

    Attributes
    ----------
    clients : tuple of str or None
        Names of the clients drawn; the first six by default.
    field : str
        ``gradient_norm`` (of the last batch) or ``delta_norm`` (of the update).
    log : bool
        Logarithmic axis.
    smooth : int
        Rounds whose mean the thick line is; 1 draws the norms of single rounds alone.
    """

    clients: tuple[str, ...] | None = Field(None, min_length=1)
    field: Literal["gradient_norm", "delta_norm"] = "gradient_norm"
    log: bool = True
    smooth: int = Field(10, ge=1)


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return one panel per run: a line per client, a vertical line per split."""
    if len(runs) > _MOST_PANELS:
        raise BadInput(f"gradient-norms draws a panel per run, at most {_MOST_PANELS}; here are {len(runs)}")
    panels = list(zip(run_titles(runs), runs, strict=True))
    layout: dict[str, Any] = {"columns": 1, "height": 2.6, "sharex": True, "sharey": True}
    figure, axes = style.draw_panels(panels, partial(_panel, options=options), **layout)
    rounds = max(run.rounds_completed for run in runs)
    axes[-1].set_xlabel("round")
    axes[-1].set_xlim(1, max(rounds, 2))  # the axes of all panels are one
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    smooth = 1 < options.smooth <= rounds
    lines = f"Thick: mean of {options.smooth} rounds; thin: each round. " if smooth else ""
    text = f"{_MEANING[options.field].capitalize()}. {lines}A client has one colour, a final cluster one "
    text += "kind of line. Grey vertical lines: rounds in which a cluster split, any cluster."
    return style.add_caption(figure, text)


def _places(run: Run, wanted: tuple[str, ...] | None) -> list[int]:
    """Return the indices of the clients to draw."""
    for name in wanted or ():
        if name not in run.clients:
            hint, known = closest(name, run.clients), ", ".join(run.clients)
            raise BadInput(f'{run.folder} has no client "{name}"{hint} (it has: {known})')
    return [run.clients.index(name) for name in wanted or run.clients[:_DEFAULT_CLIENTS]]


def _panel(axis: Axes, run: Run, options: Options) -> None:
    values, places = run.results[options.field], _places(run, options.clients)
    smooth = options.smooth if options.smooth <= run.rounds_completed else 1
    if is_together(run.config):
        raise BadInput(f"{run.folder} has no {options.field}: {TOGETHER}; leave it out")
    for number in sorted({number for number, _ in splits(splitting_groups(run))}):
        axis.axvline(number + 1, color="#999999", linewidth=0.6, linestyle=(0, (4, 2)), zorder=1, gid="split")
    final = run.results["group"][-1]
    clusters = [int(group) for group in dict.fromkeys(final)]
    drawn = grouped(places, lambda place: clusters.index(int(final[place])))
    handles: list[Line2D] = []
    for number, (cluster, members) in enumerate(drawn.items()):
        handles.append(Line2D([], [], linestyle="none", label=f"cluster {cluster + 1}"))
        dashes = style.DASHES[number % len(style.DASHES)]
        for place in members:
            colour = COLOURS[places.index(place) % len(COLOURS)]
            handles.append(_line(axis, values[:, place], smooth, colour, dashes))
            handles[-1].set_label(run.clients[place])
    axis.set_ylabel(options.field.replace("_", " "))
    if options.log:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
    title = f"{len(clusters)} cluster{'s' * (len(clusters) > 1)} at the end"
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "alignment": "left"}
    legend = axis.legend(handles=handles, title=title, title_fontsize=7, labelspacing=0.3, **beside)
    for handle, text in zip(handles, legend.get_texts(), strict=True):
        text.set_fontweight("bold" if handle.get_linestyle() == "None" else "normal")


def _line(axis: Axes, values: Float, smooth: int, colour: str, dashes: Any) -> Line2D:
    """Draw a client's norms [R], thin, and their running mean; return the line that stands for both."""
    rounds = np.arange(1, len(values) + 1)
    if smooth > 1:
        axis.plot(rounds, values, color=colour, linewidth=0.4, alpha=0.3, gid="each round")
    (line,) = axis.plot(rounds, smoothed(values, smooth), color=colour, linestyle=dashes, linewidth=1.3)
    return line
