"""Unsupervised runs (FCLG): metrics of all examples by round or by a setting, and vectors in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pydantic import Field

from fedmpi.analysis.cells import Float, grouped, key, titled, without
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS, dataset_name, objective_place, unsupervised_name
from fedmpi.analysis.scores import curve
from fedmpi.analysis.summary import setting
from fedmpi.config.tables import look_up
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store import embeddings
from fedmpi.store.reader import Run

_REPETITION = ("suite", "name", "seed", "partition.seed")
"""Settings in which repetitions differ: a repetition draws its split anew."""

_METHOD = ("objective", "algorithm", "model", "optimizer", "batch_size", "kernels")
_MOST_SHADED = 4
"""Shaded ranges that a panel bears; more methods by round have a panel each."""
_COLUMNS = 3
_MOST_TICKS = 8
_DECADES = 50.0
"""Settings that differ by so much stand on a logarithmic axis."""


@dataclass(frozen=True)
class _Curve:
    """A method's scores as people read them [repetitions] at each place."""

    name: str
    config: dict[str, Any]
    first: Run
    points: dict[float, Float]

    def summary(self) -> list[list[float]]:
        """Return the places, and the means, minima and maxima there."""
        takes = (np.mean, np.min, np.max)
        return [list(self.points), *([float(take(each)) for each in self.points.values()] for take in takes)]


_Panels = Sequence[tuple[str, Sequence[_Curve]]]
"""By panel: its heading and curves."""
_Drawn = tuple[Figure, list[tuple[Axes, Run]]]
"""A figure, and a run of each of its panels."""


class Clustering(Kind):
    """Metrics of all examples, as of clusters, by round or by a setting (FCLG, Figures 2, 4 and 5).

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

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return a panel per dataset with a line per method: mean over repetitions, and their range.

        Where that are many lines by round, each method has a panel of its own with the others in grey. Of the
        headline a thin line shows the share of the largest class: what one cluster for all would score.
        """
        metric, *_ = (self._metric(run) for run in runs)
        dotted = metric == runs[0].headline and "class_counts" in runs[0].partition
        across = {"round": (), "emd": ("partition.share",)}.get(self.by, (self.by,))
        apart = (*_REPETITION, *across)
        repetitions = grouped(runs, lambda run: key(run.config, *apart)).values()
        drawn = [self._curve(members, apart) for members in sorted(repetitions, key=_order)]
        panels = titled(drawn, lambda curve: dataset_name(str(setting(curve.config, "dataset"))), *_METHOD)
        each_own = self.by == "round" and max(len(curves) for _, curves in panels) > _MOST_SHADED
        figure, axes = _own_panels(panels) if each_own else self._shared_panels(panels)
        for axis, first in axes:
            axis.set_ylabel(metric.heading)
            if dotted:
                counts = first.partition["class_counts"].sum(axis=0)
                largest = float(100 * counts.max() / counts.sum())
                axis.axhline(largest, color="black", linewidth=0.8, linestyle=":")
            if each_own and len(panels) == 1:
                axis.label_outer()
        for axis, _ in axes[-_COLUMNS:]:  # also above a gap in the last row
            axis.tick_params(labelbottom=True)
            axis.set_xlabel(self._across_label())
        numbers = {len(values) for curve in drawn for values in curve.points.values()}
        dots = "; dotted: the largest class's share" * dotted
        return style.add_caption(figure, f"{self._caption(numbers, each_own)}{dots}.")

    def _metric(self, run: Run) -> Metric:
        """Return what is drawn of a run."""
        if run.headline.held_out:
            why = f"judged on held-out examples, by {run.headline.title}"
            raise BadInput(f"{run.folder}: {why}; leave it out")
        found = {metric.name: metric for metric in run.metrics}
        if (self.field or run.headline.name) not in found:
            raise BadInput(f"{run.folder}: has no {self.field}; it has {', '.join(found)}")
        return found[self.field or run.headline.name]

    def _curve(self, members: Sequence[Run], apart: Sequence[str]) -> _Curve:
        points: dict[float, list[float]] = {}
        for run in members:
            metric = self._metric(run)
            scores = metric.scale * run.results[metric.name]
            evaluated = np.flatnonzero(~np.isnan(scores))
            if self.by == "round":
                for place in evaluated:
                    points.setdefault(float(place + 1), []).append(float(scores[place]))
            elif len(evaluated):
                points.setdefault(self._across(run), []).append(float(scores[evaluated[-1]]))
        ordered = {place: np.array(values) for place, values in sorted(points.items())}
        return _Curve(_method(members[0]), without(members[0].config, *apart), members[0], ordered)

    def _across(self, run: Run) -> float:
        emd = self.by == "emd"
        value = round(float(run.partition["total_emd"]), 3) if emd else look_up(run.config, self.by)
        if not isinstance(value, int | float):
            raise BadInput(f"clustering: by = {self.by!r} is no number in {run.folder}")
        return float(value)

    def _shared_panels(self, panels: _Panels) -> _Drawn:
        """Return a panel per dataset with all its methods."""
        figure, axes = style.draw_panels(panels, self._panel, height=3.0)
        style.add_legend(figure, axes)
        return figure, [(axis, curves[0].first) for axis, (_, curves) in zip(axes, panels, strict=True)]

    def _panel(self, axis: Axes, curves: Sequence[_Curve]) -> None:
        for number, (label, (own,)) in enumerate(titled(curves, lambda each: each.name)):
            places, mean, low, high = own.summary()
            again, place = divmod(number, len(COLOURS))
            marker = "" if self.by == "round" else style.MARKERS[(number + again) % len(style.MARKERS)]
            dashes = style.DASHES[again % len(style.DASHES)]
            width = 2.2 - 1.3 * number / max(len(curves) - 1, 1)  # the first shows beneath an equal curve
            look: dict[str, Any] = {"linestyle": dashes, "marker": marker, "linewidth": width}
            axis.plot(places, mean, label=label, color=COLOURS[place], **look)
            axis.fill_between(places, low, high, color=COLOURS[place], alpha=0.1, linewidth=0)
        axis.set_xlabel(self._across_label())
        across = sorted({place for curve in curves for place in curve.points})
        if self.by == "round":
            _round_ticks(axis, across[-1])
            return
        if self.by != "emd" and across[0] > 0 and across[-1] / across[0] >= _DECADES:
            axis.set_xscale("log")
            axis.minorticks_off()
        if len(across) <= _MOST_TICKS:
            axis.set_xticks(across, [f"{place:g}" for place in across])

    def _across_label(self) -> str:
        return "EMD" if self.by == "emd" else self.by.rpartition(".")[2].replace("_", " ")

    def _caption(self, numbers: set[int], each_own: bool) -> str:
        """Return what the picture shows, from how many repetitions each point has."""
        number = str(min(numbers)) if len(numbers) == 1 else f"{min(numbers)} to {max(numbers)}"
        what = "by round" if self.by == "round" else "after the last round"
        repetitions = f"mean over {number} repetitions; shaded, their range"
        others = "; grey, the other methods; in the title, the last round's mean" if each_own else ""
        return f"Score {what}: {'one repetition' if number == '1' else repetitions}{others}"


def _own_panels(panels: _Panels) -> _Drawn:
    """Return a panel per dataset and method: its mean and range, in grey the means of the others."""
    named = [(heading, curves, titled(curves, lambda each: each.name)) for heading, curves in panels]
    wanted = [(heading, all_, label, own) for heading, all_, lines in named for label, (own,) in lines]
    layout: dict[str, Any] = {"sharex": True, "sharey": len(panels) == 1}
    figure, axes = style.panels(len(wanted), columns=_COLUMNS, height=1.6, **layout)
    for axis, (heading, all_, label, own) in zip(axes, wanted, strict=True):
        for other in all_:
            axis.plot(*other.summary()[:2], color="#bbbbbb", linewidth=0.6, gid="others")
        places, mean, low, high = own.summary()
        axis.fill_between(places, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
        axis.plot(places, mean, color=COLOURS[0], linewidth=1.6)
        title = label if len(panels) == 1 else f"{heading}: {label}"
        axis.set_title(f"{title}, {mean[-1]:.1f}")
        _round_ticks(axis, places[-1])
    if len(panels) == 1:
        figure.suptitle(panels[0][0], x=0.01, ha="left", fontsize=9)
    return figure, [(axis, own.first) for axis, (*_, own) in zip(axes, wanted, strict=True)]


def _method(run: Run) -> str:
    objective, algorithm = (str(setting(run.config, axis)) for axis in ("objective", "algorithm"))
    return unsupervised_name(objective, algorithm)


def _order(members: Sequence[Run]) -> int:
    return objective_place(str(setting(members[0].config, "objective")))


def _round_ticks(axis: Axes, last: float) -> None:
    ticks = MaxNLocator(integer=True, steps=[1, 2, 5, 10]).tick_values(0, last)
    axis.set_xticks([tick for tick in ticks if 0 < tick <= last])


class TSne(Kind):
    """Vectors of graphs in the plane by t-SNE, a panel per kept round, a colour per class (FCLG, Figure 3).

    Attributes
    ----------
    perplexity : float
        As scikit-learn's; the neighbours that count.
    seed : int
        Of t-SNE.
    """

    perplexity: float = Field(30.0, gt=0)
    seed: int = Field(0, ge=0, lt=2**32)

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return a row of panels per run, one for each round whose vectors are kept."""
        kept = [(run, _kept(run)) for run in runs]
        width = max(len(rounds) for _, rounds in kept)
        shown = [(run, number, found) for run, rounds in kept for number, found in rounds.items()]
        figure, axes = style.panels(len(shown), columns=width, height=2.5)
        for axis, (run, number, found) in zip(axes, shown, strict=True):
            places = self._placed(found["vectors"])
            for label in map(int, np.unique(found["labels"])):
                across, up = places[found["labels"] == label].T
                look: dict[str, Any] = {"s": 4, "linewidth": 0, "alpha": 0.7, "label": f"class {label}"}
                axis.scatter(across, up, color=COLOURS[label % len(COLOURS)], **look)
            metric = run.headline
            value = metric.scale * curve(run.results, metric)[number - 1]
            title = f"round {number}, {metric.title} {value:.1f}{' %' * metric.percent}"
            axis.set(title=title, xticks=[], yticks=[])
        style.add_legend(figure, axes)
        names = "; ".join(dict.fromkeys(map(_named, runs)))
        text = f"t-SNE with perplexity {self.perplexity:g} and seed {self.seed}"
        return style.add_caption(figure, f"{names}: a dot per graph, coloured by class, {text}.")

    def _placed(self, vectors: np.ndarray) -> np.ndarray:
        """Return a place in the plane for each graph, [G, 2]; on one thread, so the same every time."""
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits

        perplexity = min(self.perplexity, (len(vectors) - 1) / 3)
        if (vectors == vectors[0]).all():
            return np.zeros((len(vectors), 2))  # nothing to tell apart, which t-SNE cannot take
        with threadpool_limits(1):
            start = "pca" if vectors.shape[1] > 1 else "random"
            found = TSNE(2, perplexity=perplexity, init=start, random_state=self.seed, n_jobs=1)
            return np.asarray(found.fit_transform(vectors.astype(np.float64)))


def _kept(run: Run) -> dict[int, dict[str, np.ndarray]]:
    """Return the vectors of the rounds that a run was asked to keep."""
    asked = run.config.get("evaluation", {}).get("embeddings") or []
    wanted = [number for number in asked if number <= run.rounds_completed]
    if not wanted:
        advice = "run it with evaluation.embeddings = [1, 10, 20], for example"
        raise BadInput(f"{run.folder} keeps no vectors: {advice}")
    found = embeddings.load(run.folder)
    if missing := ", ".join(str(number) for number in wanted if number not in found):
        advice = "remove the folder and run the case again"
        raise BadInput(f"{run.folder}: the vectors of round {missing} are gone: {advice}")
    return {number: found[number] for number in wanted}


def _named(run: Run) -> str:
    """Return dataset, method and seed."""
    return f"{dataset_name(str(setting(run.config, 'dataset')))}, {_method(run)}, seed {run.config['seed']}"
