"""Heterogeneity of graphs: within the clusters that runs found, and between pairs of datasets."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedmpi.analysis.cells import Cell, by_rule, cells, run_titles, seeds_text, titled
from fedmpi.analysis.clusterings import KINDS, ClusteredRun, Compared, TableMaker, clustered, datasets_of
from fedmpi.analysis.figures import GraphKind, style
from fedmpi.analysis.names import COLOURS, algorithm_name, dataset_name
from fedmpi.analysis.scores import LAST
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.clusters import DRAWS, control, within_one
from fedmpi.heterogeneity.distances import STRUCTURE, Float, spread
from fedmpi.heterogeneity.walks import embed
from fedmpi.store.reader import Run

_LOOKS = {"structure": (COLOURS[0], "o", -0.17), "features": (COLOURS[1], "s", 0.17)}
"""Colour, marker and place below the row's middle of each kind."""

_DASHES = (0, (4, 2))
_ROW = 0.26
_MOST_PANELS = 12
_LABEL_LETTERS = 27

_Row = tuple[str, Mapping[str, Compared]]
"""Label, and each kind's figure."""


class WithinClusters(GraphKind):
    """Heterogeneity within final clusters, beside random ones and that before clustering (GCFL, Figure 3).

    The paper does not say how it sums up a cluster, nor does it show what chance gives: a cluster of one
    client has fewer and more alike pairs whoever is in it. Here a light bar shows random partitions of the
    same sizes, and pairs of different clients stand apart.
    """

    def draw(self, runs: Sequence[Run], source: DataSource | None = None) -> Figure:
        """Return a panel per run: a row per final cluster, and two for all of them.

        Raises
        ------
        BadInput
            There are too many runs for one picture; a run's graphs cannot be had, or are not those that it
            was made with.
        """
        if len(runs) > _MOST_PANELS:
            most = f"at most {_MOST_PANELS}; here are {len(runs)}"
            raise BadInput(f"within-clusters draws a panel per run, {most}")
        maker = TableMaker(source or DataSource.from_environment(), self.walk_options())
        found = [clustered(run, maker) for run in runs]
        contents = [(_rows(each, maker), each.before.scopes) for each in found]
        lines = max(sum(1.0 + 0.3 * label.count("\n") for label, _ in rows) for rows, _ in contents)
        panels = list(zip(run_titles(runs), contents, strict=True))
        height = 0.85 + _ROW * lines
        figure, _ = style.draw_panels(panels, lambda axis, each: _panel(axis, *each), height=height)
        dots = [Line2D([], [], color=look[0], marker=look[1], linestyle="none") for look in _LOOKS.values()]
        before = Line2D([], [], color="#777777", linestyle=_DASHES, linewidth=0.9)
        random = Line2D([], [], color="#777777", alpha=0.35, linewidth=5.5)
        labels = [*_LOOKS, "before clustering", "random clusters"]
        figure.legend([*dots, before, random], labels, loc="outside upper right", ncols=len(labels))
        text = "Mean over pairs of graphs in a final cluster: Jensen-Shannon distance of anonymous walks, "
        text += "divergence of linked nodes' similarity. Before clustering: over all clients. Random: mean "
        text += f"and standard deviation over {DRAWS} partitions into clusters of the same sizes."
        return style.add_caption(figure, text)


def _rows(run: ClusteredRun, maker: TableMaker) -> list[_Row]:
    """Return the rows of a panel: each final cluster, beside random ones of its size, then all of them."""
    tables, last = maker.of(run.run), run.clusterings[-1]

    def figure(kind: str, cluster: int) -> Compared:
        table = getattr(tables, kind)
        seed = maker.options.seed
        random = control(lambda drawn: within_one(table, drawn == cluster).mean, last.group, seed)
        return Compared(within_one(table, last.group == cluster), random)

    found: list[_Row] = []
    for members in last.clusters if len(last.clusters) > 1 else ():
        cluster = int(last.group[run.run.clients.index(members[0])])
        found.append((_label(members), {kind: figure(kind, cluster) for kind in KINDS}))
    found.append(("all clusters", {kind: scope.every for kind, scope in last.scopes.items()}))
    apart = {kind: scope.different for kind, scope in last.scopes.items()}
    return [*found, ("all clusters, pairs of\ndifferent clients", apart)]


def _label(members: Sequence[str]) -> str:
    """Return a cluster's clients in a few lines; many are counted."""
    names = [dataset_name(name).removeprefix("client-") for name in members]
    numbered = names != [dataset_name(name) for name in members]
    text = f"{'client' + 's' * (len(names) > 1) + ' ' if numbered else ''}{', '.join(names)}"
    lines = textwrap.wrap(text, _LABEL_LETTERS, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines[:2]) + (f" ... ({len(names)})" if len(lines) > 2 else "")


def _panel(axis: Axes, rows: Sequence[_Row], before: Mapping[str, Any]) -> None:
    for kind, (colour, marker, shift) in _LOOKS.items():
        axis.axvline(before[kind].every.found.mean, color=colour, linestyle=_DASHES, linewidth=0.9)
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


@dataclass(frozen=True)
class _Point:
    """What a cell of runs gives.

    Attributes
    ----------
    partner : str
        The other dataset; empty without.
    across : float
        Heterogeneity of structure between the two; NaN without a partner.
    mean, std : float
        Test accuracy on the dataset in the last round, in %: over seeds (ddof 1; 0 for one).
    """

    partner: str
    across: float
    mean: float
    std: float


class PairHeterogeneity(GraphKind):
    """Accuracy on one dataset by how far its partner's graphs are apart from its own (GCFL, Figure 5).

    The paper pairs PROTEINS with six datasets under FedAvg, with one-hot degrees as features. Heterogeneity
    is measured between the two datasets: pairs of one graph of each.

    Attributes
    ----------
    dataset : str
        The dataset whose accuracy is drawn; a run has it and one other, or it alone.
    """

    dataset: str = "PROTEINS"

    def draw(self, runs: Sequence[Run], source: DataSource | None = None) -> Figure:
        """Return one panel with a named point per pair of datasets, and a band for the dataset alone.

        Raises
        ------
        BadInput
            A run is neither of the dataset alone nor of it and one other, each on one client; there is no
            pair; or the data cannot be had.
        """
        found = cells(runs)
        points = dict(zip(found, self._points(found, source or DataSource.from_environment()), strict=True))
        series = titled(found, lambda cell: algorithm_name(cell.algorithm), "dataset")
        figure, (axis,) = style.panels(1, columns=1, height=3.4)
        looks = style.looks([members[0].algorithm for _, members in series])
        for number, ((label, members), look) in enumerate(zip(series, looks, strict=True)):
            colour = look["color"]
            if pairs := [points[cell] for cell in members if points[cell].partner]:
                across, means, spreads = np.transpose([(each.across, each.mean, each.std) for each in pairs])
                marker = style.MARKERS[number % len(style.MARKERS)]
                bars: dict[str, Any] = {"linestyle": "none", "elinewidth": 0.9, "capsize": 2.5}
                axis.errorbar(across, means, spreads, color=colour, label=label, marker=marker, **bars)
            for alone in (points[cell] for cell in members if not points[cell].partner):
                low, high = alone.mean - alone.std, alone.mean + alone.std
                name = f"{self.dataset} alone, {label}"
                axis.axhline(alone.mean, color=colour, linestyle=_DASHES, linewidth=1.0, label=name)
                axis.axhspan(low, high, color=colour, alpha=0.13, linewidth=0)
        named = [points[cell] for _, members in series for cell in members if points[cell].partner]
        if not named:
            raise BadInput(f"pair-heterogeneity: there is no run of {self.dataset} and another dataset")
        _name_partners(axis, named)
        axis.set_xlabel(f"structure heterogeneity between {self.dataset} and the other dataset")
        axis.set_ylabel(f"test {found[0].metric.heading} on {self.dataset}")
        axis.margins(x=0.13, y=0.12)
        if len(series) > 1:
            figure.legend(loc="outside upper right", ncols=3)
        seeds = seeds_text(cell.runs for cell in found)
        text = f"Accuracy in the last round ({seeds}); bars and band: standard deviation over seeds. "
        text += f"Heterogeneity: mean Jensen-Shannon distance of anonymous walks (length {self.length}) "
        text += "over pairs of one graph of each dataset."
        return style.add_caption(figure, text)

    def _points(self, found: Sequence[Cell[Run]], source: DataSource) -> list[_Point]:
        walks = self.walk_options()
        shares: dict[str, Float] = {}

        def between(run: Run) -> float:
            """Return the heterogeneity of a run's two datasets; the walks of each are drawn once."""
            raws = datasets_of(run, source)
            for raw in raws:
                if raw.name not in shares:
                    shares[raw.name] = embed(raw.topology, walks.length, walks.seed, walks.walks)
            return spread([shares[raw.name] for raw in raws], STRUCTURE, walks.seed).mean

        points = []
        for cell in found:
            names = cell.first.partition.get("datasets", np.array([])).tolist()
            if self.dataset not in names or len(names) > 2 or len(set(names)) < len(names):
                wanted = f"{self.dataset} and one other dataset, a client each"
                example = f"dataset = '{self.dataset}+DD' with partition = 'per-dataset'"
                advice = f"is not of {wanted}, as {example} is; leave it out"
                raise BadInput(f"pair-heterogeneity: {cell.first.folder} {advice}")
            place, values = names.index(self.dataset), map(by_rule(LAST), cell.runs.values())
            accuracy = np.array([each[place] for each in values])
            std = float(np.std(accuracy, ddof=1)) if len(accuracy) > 1 else 0.0
            partner = "" if len(names) == 1 else names[1 - place]
            across = between(cell.first) if partner else math.nan
            points.append(_Point(partner, across, float(accuracy.mean()), std))
        return points


def _name_partners(axis: Axes, points: Sequence[_Point]) -> None:
    """Name each partner at its highest point, left and right in turn, as neighbours may be close."""
    highest: dict[str, _Point] = {}
    for point in sorted(points, key=lambda point: (point.across, -point.mean)):
        highest.setdefault(point.partner, point)
    for place, (partner, point) in enumerate(highest.items()):
        offset, side = ((6, 4), "left") if place % 2 else ((-6, 4), "right")
        look: dict[str, Any] = {"textcoords": "offset points", "size": 7, "ha": side, "va": "center"}
        axis.annotate(dataset_name(partner), (point.across, point.mean), offset, **look)
