"""Accuracy on one dataset by how far its partner's graphs are apart from its own (GCFL, Figure 5).

The paper pairs PROTEINS with six datasets under FedAvg, with one-hot degrees as
features. Heterogeneity is measured between the two datasets: pairs of one graph of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedmpi.analysis.cells import Cell, by_rule, cells, seeds_text, titled
from fedmpi.analysis.clusterings import datasets_of
from fedmpi.analysis.figures import WalkKindOptions, style
from fedmpi.analysis.names import algorithm_name, dataset_name
from fedmpi.analysis.scores import LAST
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.distances import STRUCTURE, Float, spread
from fedmpi.heterogeneity.walks import embed
from fedmpi.store.reader import Run


class Options(WalkKindOptions):
    """Options of ``pair-heterogeneity``.

    Attributes
    ----------
    dataset : str
        The dataset whose accuracy is drawn; a run has it and one other, or it alone.
    """

    dataset: str = "PROTEINS"


@dataclass(frozen=True)
class Point:
    """What one cell of runs gives.

    Attributes
    ----------
    partner : str
        The other dataset; empty without.
    across : float
        Heterogeneity of structure between the two; NaN without a partner.
    accuracy : float64 [seeds]
        Test accuracy on the dataset in the last round, in %.
    """

    partner: str
    across: float
    accuracy: Float

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(self.accuracy.mean())

    @property
    def std(self) -> float:
        """Standard deviation over seeds (ddof 1), 0 for one."""
        return float(np.std(self.accuracy, ddof=1)) if len(self.accuracy) > 1 else 0.0


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return one panel with a named point per pair of datasets, and a band for the dataset alone.

    Raises
    ------
    BadInput
        A run is neither of the dataset alone nor of it and one other, each on one client; there is no
        pair; or the data cannot be had.
    """
    distances = _Distances(options, source or DataSource.from_environment())
    found = cells(runs)
    series = titled(found, lambda cell: algorithm_name(cell.algorithm), "dataset")
    looks = style.looks([members[0].algorithm for _, members in series])
    figure, (axis,) = style.panels(1, columns=1, height=3.4)
    named: list[Point] = []
    for number, ((label, members), look) in enumerate(zip(series, looks, strict=True)):
        colour = look["color"]
        points = [_point(cell, options, distances) for cell in members]
        pairs = [point for point in points if point.partner]
        named += pairs
        if pairs:
            _series(axis, pairs, label, colour, style.MARKERS[number % len(style.MARKERS)])
        for point in points:
            if not point.partner:
                _band(axis, point, f"{options.dataset} alone, {label}", colour)
    if not named:
        raise BadInput(f"pair-heterogeneity: there is no run of {options.dataset} and another dataset")
    _names(axis, named)
    axis.set_xlabel(f"structure heterogeneity between {options.dataset} and the other dataset")
    axis.set_ylabel(f"test {found[0].metric.heading} on {options.dataset}")
    axis.margins(x=0.13, y=0.12)
    if len(series) > 1:
        figure.legend(loc="outside upper right", ncols=3)
    return style.add_caption(figure, _caption(found, options))


class _Distances:
    """Structure heterogeneity between two datasets; each dataset's walks are drawn once."""

    def __init__(self, options: Options, source: DataSource) -> None:
        self._walks, self._source = options.walk_options(), source
        self._shares: dict[str, Float] = {}

    def between(self, run: Run) -> float:
        """Return it for the two datasets of a run."""
        walks, raws = self._walks, datasets_of(run, self._source)
        for raw in raws:
            if raw.name not in self._shares:
                self._shares[raw.name] = embed(raw.topology, walks.length, walks.seed, walks.walks)
        return spread([self._shares[raw.name] for raw in raws], STRUCTURE, walks.seed).mean


def _point(cell: Cell[Run], options: Options, distances: _Distances) -> Point:
    run = cell.first
    names = run.partition["datasets"].tolist() if "datasets" in run.partition else []
    if options.dataset not in names or len(names) > 2 or len(set(names)) < len(names):
        raise BadInput(
            f"pair-heterogeneity: {run.folder} is not of {options.dataset} and one other dataset, a client "
            f"each, as dataset = '{options.dataset}+DD' with partition = 'per-dataset' is; leave it out"
        )
    place = names.index(options.dataset)
    accuracy = np.array([by_rule(LAST)(each)[place] for each in cell.runs.values()])
    if len(names) == 1:
        return Point("", math.nan, accuracy)
    return Point(names[1 - place], distances.between(run), accuracy)


def _series(axis: Axes, points: Sequence[Point], label: str, colour: str, marker: str) -> None:
    across, means, spreads = ([getattr(each, name) for each in points] for name in ("across", "mean", "std"))
    look: dict[str, Any] = {"marker": marker, "linestyle": "none", "elinewidth": 0.9, "capsize": 2.5}
    axis.errorbar(across, means, spreads, color=colour, label=label, **look)


def _band(axis: Axes, point: Point, label: str, colour: str) -> None:
    axis.axhline(point.mean, color=colour, linestyle=(0, (4, 2)), linewidth=1.0, label=label)
    axis.axhspan(point.mean - point.std, point.mean + point.std, color=colour, alpha=0.13, linewidth=0)


def _names(axis: Axes, points: Sequence[Point]) -> None:
    """Name each partner at its highest point, left and right in turn, as neighbours may be close."""
    highest: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: (point.across, -point.mean)):
        highest.setdefault(point.partner, point)
    for place, (partner, point) in enumerate(highest.items()):
        offset, side = ((6, 4), "left") if place % 2 else ((-6, 4), "right")
        look: dict[str, Any] = {"textcoords": "offset points", "size": 7, "ha": side, "va": "center"}
        axis.annotate(dataset_name(partner), (point.across, point.mean), offset, **look)


def _caption(found: Sequence[Cell[Run]], options: Options) -> str:
    seeds = seeds_text(cell.runs for cell in found)
    return (
        f"Accuracy in the last round ({seeds}); bars and band: standard deviation over seeds. Heterogeneity: "
        f"mean Jensen-Shannon distance of anonymous walks (length {options.length}) over pairs of one graph "
        "of each dataset."
    )
