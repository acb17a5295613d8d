"""Metrics of all examples, as of clusters, by round or by a setting (FCLG, Figures 2, 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedmpi.analysis.cells import Float, grouped, key, titled, without
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS, dataset_name, objective_place, unsupervised_name
from fedmpi.analysis.summary import setting
from fedmpi.config.tables import look_up
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store.reader import Run

_REPETITION = ("suite", "name", "seed", "partition.seed")
"""Settings in which repetitions differ: a repetition draws its split anew."""

_METHOD = ("objective", "algorithm", "model", "optimizer", "batch_size", "kernels")

_DOTTED = "; dotted: the largest class's share"
_MOST_SHADED = 4
"""Shaded ranges that a panel bears; more methods by round have a panel each."""
_OTHERS = "#bbbbbb"
_COLUMNS = 3
_MOST_TICKS = 8
_DECADES = 50.0
"""Settings that differ by so much stand on a logarithmic axis."""


class Options(KindOptions):
    """Options of ``clustering``.

    Attributes
    ----------
    by : str
        Across: ``round``, ``emd`` (the partition's earth mover's distance), or a setting such as
        ``local_epochs`` and ``partition.clients``; then the last round's score is drawn.
    field : str
        A metric of the runs by name, such as ``clustering_f1``, or ``probe_accuracy`` of runs with
        ``evaluation.probe``; by default their headline.
    """

    by: str = "round"
    field: str = ""


@dataclass(frozen=True)
class _Curve:
    """A method's scores as people read them [repetitions] at each place."""

    name: str
    config: dict[str, Any]
    first: Run
    points: dict[float, Float]


_Panels = Sequence[tuple[str, Sequence[_Curve]]]
"""By panel: its heading and curves."""
_Drawn = tuple[Figure, list[tuple[Axes, Run]]]
"""A figure, and a run of each of its panels."""


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a panel per dataset with a line per method: mean over repetitions, and their range.

    Where that are many lines by round, each method has a panel of its own with the others in grey. Of the
    headline a thin line shows the share of the largest class: what one cluster for all would score.
    """
    (metric, *_) = [_metric(run, options) for run in runs]
    dotted = metric == runs[0].headline and "class_counts" in runs[0].partition
    apart = (*_REPETITION, *(() if options.by in ("round", "emd") else (options.by,)))
    apart = (*apart, "partition.share") if options.by == "emd" else apart
    repetitions = grouped(runs, lambda run: key(run.config, *apart)).values()
    drawn = [_curve(members, options, apart) for members in sorted(repetitions, key=_order)]
    panels = titled(drawn, lambda curve: dataset_name(str(setting(curve.config, "dataset"))), *_METHOD)
    each_own = options.by == "round" and max(len(curves) for _, curves in panels) > _MOST_SHADED
    figure, axes = _own_panels(panels) if each_own else _shared_panels(panels, options)
    for axis, first in axes:
        axis.set_ylabel(metric.heading)
        if dotted:
            axis.axhline(_largest_class(first), color="black", linewidth=0.8, linestyle=":")
        if each_own and len(panels) == 1:
            axis.label_outer()
    for axis, _ in axes[-_COLUMNS:]:  # also above a gap in the last row
        axis.tick_params(labelbottom=True)
        axis.set_xlabel(_across_label(options))
    counts = {len(values) for curve in drawn for values in curve.points.values()}
    return style.add_caption(figure, f"{_caption(counts, each_own, options)}{_DOTTED * dotted}.")


def _shared_panels(panels: _Panels, options: Options) -> _Drawn:
    """Return a panel per dataset with all its methods."""
    figure, axes = style.draw_panels(panels, partial(_panel, options=options), height=3.0)
    style.add_legend(figure, axes)
    return figure, [(axis, curves[0].first) for axis, (_, curves) in zip(axes, panels, strict=True)]


def _own_panels(panels: _Panels) -> _Drawn:
    """Return a panel per dataset and method: its mean and range, in grey the means of the others."""
    named = [(heading, titled(curves, lambda curve: curve.name)) for heading, curves in panels]
    wanted = [(heading, label, curve) for heading, lines in named for label, (curve,) in lines]
    layout: dict[str, Any] = {"sharex": True, "sharey": len(panels) == 1}
    figure, axes = style.panels(len(wanted), columns=_COLUMNS, height=1.6, **layout)
    of_dataset = dict(panels)
    for axis, (heading, label, curve) in zip(axes, wanted, strict=True):
        for other in of_dataset[heading]:
            axis.plot(*_summary(other)[:2], color=_OTHERS, linewidth=0.6, gid="others")
        places, mean, low, high = _summary(curve)
        axis.fill_between(places, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
        axis.plot(places, mean, color=COLOURS[0], linewidth=1.6)
        title = label if len(panels) == 1 else f"{heading}: {label}"
        axis.set_title(f"{title}, {mean[-1]:.1f}")
        _round_ticks(axis, places[-1])
    if len(panels) == 1:
        figure.suptitle(panels[0][0], x=0.01, ha="left", fontsize=9)
    return figure, [(axis, curve.first) for axis, (*_, curve) in zip(axes, wanted, strict=True)]


def _metric(run: Run, options: Options) -> Metric:
    """Return what is drawn of a run."""
    if run.headline.held_out:
        raise BadInput(f"{run.folder}: judged on held-out examples, by {run.headline.title}; leave it out")
    found = {metric.name: metric for metric in run.metrics}
    if (options.field or run.headline.name) not in found:
        raise BadInput(f"{run.folder}: has no {options.field}; it has {', '.join(found)}")
    return found[options.field or run.headline.name]


def _caption(counts: set[int], each_own: bool, options: Options) -> str:
    """Return what the picture shows."""
    number = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    what = "by round" if options.by == "round" else "after the last round"
    repetitions = "one repetition" if number == "1" else f"mean over {number} repetitions"
    spread = "" if number == "1" else "; shaded, their range"
    others = "; grey, the other methods; in the title, the last round's mean" if each_own else ""
    return f"Score {what}: {repetitions}{spread}{others}"


def _largest_class(run: Run) -> float:
    """Return the share of the largest class in percent."""
    counts = run.partition["class_counts"].sum(axis=0)
    return float(100 * counts.max() / counts.sum())


def _order(members: Sequence[Run]) -> int:
    return objective_place(str(setting(members[0].config, "objective")))


def _curve(members: Sequence[Run], options: Options, apart: Sequence[str]) -> _Curve:
    config = members[0].config
    objective, algorithm = (str(setting(config, axis)) for axis in ("objective", "algorithm"))
    points: dict[float, list[float]] = {}
    for run in members:
        metric = _metric(run, options)
        scores = metric.scale * run.results[metric.name]
        evaluated = np.flatnonzero(~np.isnan(scores))
        if options.by == "round":
            for place in evaluated:
                points.setdefault(float(place + 1), []).append(float(scores[place]))
        elif len(evaluated):
            points.setdefault(_across(run, options.by), []).append(float(scores[evaluated[-1]]))
    ordered = {place: np.array(values) for place, values in sorted(points.items())}
    return _Curve(unsupervised_name(objective, algorithm), without(config, *apart), members[0], ordered)


def _across(run: Run, by: str) -> float:
    value = round(float(run.partition["total_emd"]), 3) if by == "emd" else look_up(run.config, by)
    if not isinstance(value, int | float):
        raise BadInput(f"clustering: by = {by!r} is no number in {run.folder}")
    return float(value)


def _summary(curve: _Curve) -> list[list[float]]:
    """Return places of a curve, and its means, minima and maxima there."""
    found = [[float(take(values)) for values in curve.points.values()] for take in (np.mean, np.min, np.max)]
    return [list(curve.points), *found]


def _panel(axis: Axes, curves: Sequence[_Curve], options: Options) -> None:
    for number, (label, (curve,)) in enumerate(titled(curves, lambda curve: curve.name)):
        places, mean, low, high = _summary(curve)
        again, place = divmod(number, len(COLOURS))
        colour, dashes = COLOURS[place], style.DASHES[again % len(style.DASHES)]
        marker = "" if options.by == "round" else style.MARKERS[(number + again) % len(style.MARKERS)]
        width = 2.2 - 1.3 * number / max(len(curves) - 1, 1)  # the first shows beneath an equal curve
        axis.plot(places, mean, label=label, color=colour, linestyle=dashes, marker=marker, linewidth=width)
        axis.fill_between(places, low, high, color=colour, alpha=0.1, linewidth=0)
    axis.set_xlabel(_across_label(options))
    across = sorted({place for curve in curves for place in curve.points})
    if options.by == "round":
        _round_ticks(axis, across[-1])
        return
    if options.by != "emd" and across[0] > 0 and across[-1] / across[0] >= _DECADES:
        axis.set_xscale("log")
        axis.minorticks_off()
    if len(across) <= _MOST_TICKS:
        axis.set_xticks(across, [f"{place:g}" for place in across])


def _across_label(options: Options) -> str:
    return {"emd": "EMD"}.get(options.by, options.by.rpartition(".")[2].replace("_", " "))


def _round_ticks(axis: Axes, last: float) -> None:
    ticks = MaxNLocator(integer=True, steps=[1, 2, 5, 10]).tick_values(0, last)
    axis.set_xticks([tick for tick in ticks if 0 < tick <= last])
