"""Heterogeneity within final clusters, beside random ones and that before clustering (GCFL, Figure 3).

The paper does not say how it sums up a cluster, nor does it show what chance gives:
a cluster of one client has fewer and more alike pairs whoever is in it. Here a light
bar shows random partitions of the same sizes, and pairs of different clients stand apart.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedmpi.analysis.cells import run_titles
from fedmpi.analysis.clusterings import KINDS, ClusteredRun, Clustering, Compared, Int, TableMaker, clustered
from fedmpi.analysis.figures import WalkKindOptions as Options
from fedmpi.analysis.figures import style
from fedmpi.analysis.names import COLOURS, dataset_name
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.clusters import DRAWS, PairTable, control, within_one
from fedmpi.store.reader import Run

_LOOKS = {"structure": (COLOURS[0], "o", -0.17), "features": (COLOURS[1], "s", 0.17)}
"""Colour, marker and place below the row's middle of each kind."""

_DASHES = (0, (4, 2))
_ROW = 0.26
_MOST_PANELS = 12
_LABEL_LETTERS = 27

Row = tuple[str, dict[str, Compared]]
"""Label, and each kind's figure."""


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a panel per run: a row per final cluster, and two for all of them.

    Raises
    ------
    BadInput
        There are too many runs for one picture; a run's graphs cannot be had, or are not those that it was
        made with.
    """
    if len(runs) > _MOST_PANELS:
        raise BadInput(f"within-clusters draws a panel per run, at most {_MOST_PANELS}; here are {len(runs)}")
    maker = TableMaker(source or DataSource.from_environment(), options.walk_options())
    found = [clustered(run, maker) for run in runs]
    rows = [_rows(each, maker) for each in found]
    lines = max(sum(1.0 + 0.3 * label.count("\n") for label, _ in panel) for panel in rows)
    contents = zip(rows, (each.before for each in found), strict=True)
    panels = list(zip(run_titles(runs), contents, strict=True))
    figure, _ = style.draw_panels(panels, lambda axis, each: _panel(axis, *each), height=0.85 + _ROW * lines)
    _legend(figure)
    return style.add_caption(
        figure,
        "Mean over pairs of graphs in a final cluster: Jensen-Shannon distance of anonymous walks, "
        "divergence of linked nodes' similarity. Before clustering: over all clients. Random: mean and "
        f"standard deviation over {DRAWS} partitions into clusters of the same sizes.",
    )


def _rows(run: ClusteredRun, maker: TableMaker) -> list[Row]:
    """Return the rows of a panel: each final cluster, then all of them."""
    tables, last = maker.of(run.run), run.clusterings[-1]
    kinds = {kind: getattr(tables, kind) for kind in KINDS}
    clients, seed = run.run.clients, maker.options.seed
    found: list[Row] = []
    for members in last.clusters if len(last.clusters) > 1 else ():
        cluster = int(last.group[clients.index(members[0])])
        figures = {kind: _of_cluster(table, last.group, cluster, seed) for kind, table in kinds.items()}
        found.append((_label(members), figures))
    found.append(("all clusters", {kind: scope.every for kind, scope in last.scopes.items()}))
    apart = {kind: scope.different for kind, scope in last.scopes.items()}
    found.append(("all clusters, pairs of\ndifferent clients", apart))
    return found


def _of_cluster(table: PairTable, group: Int, cluster: int, seed: int) -> Compared:
    """Return the figure of one cluster, beside that of the same size in random partitions."""
    return Compared(
        within_one(table, group == cluster),
        control(lambda drawn: within_one(table, drawn == cluster).mean, group, seed),
    )


def _label(members: Sequence[str]) -> str:
    """Return a cluster's clients in a few lines; many are counted."""
    names = [dataset_name(name).removeprefix("client-") for name in members]
    numbered = names != [dataset_name(name) for name in members]
    text = f"{'client' + 's' * (len(names) > 1) + ' ' if numbered else ''}{', '.join(names)}"
    lines = textwrap.wrap(text, _LABEL_LETTERS, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines[:2]) + (f" ... ({len(names)})" if len(lines) > 2 else "")


def _panel(axis: Axes, rows: Sequence[Row], before: Clustering) -> None:
    for kind, (colour, marker, shift) in _LOOKS.items():
        axis.axvline(before.scopes[kind].every.found.mean, color=colour, linestyle=_DASHES, linewidth=0.9)
        for place, (_, figures) in enumerate(rows):
            found, random = figures[kind].found, figures[kind].random
            if not found.pairs:
                continue
            if not random.constant:
                ends, level = (random.mean - random.std, random.mean + random.std), [place + shift] * 2
                axis.plot(ends, level, color=colour, alpha=0.25, linewidth=5.5, solid_capstyle="butt")
            (dot,) = axis.plot(found.mean, place + shift, marker, color=colour, markersize=3.8)
            dot.set(clip_on=False, gid=f"{kind} {place}")
    axis.set_yticks(np.arange(len(rows)), [label for label, _ in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.axhline(len(rows) - 2.5, color="#999999", linewidth=0.7)
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0, labelsize=6.8)
    axis.set_xlabel("heterogeneity (0 to 1)")


def _legend(figure: Figure) -> None:
    dots = [Line2D([], [], color=look[0], marker=look[1], linestyle="none") for look in _LOOKS.values()]
    before = Line2D([], [], color="#777777", linestyle=_DASHES, linewidth=0.9)
    random = Line2D([], [], color="#777777", alpha=0.35, linewidth=5.5)
    labels = [*_LOOKS, "before clustering", "random clusters"]
    figure.legend([*dots, before, random], labels, loc="outside upper right", ncols=len(labels))
