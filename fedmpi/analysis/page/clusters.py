"""The page's section on unsupervised runs, judged by one clustering of all clients' graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.page.charts import Axes, lines
from fedmpi.analysis.page.collect import Float
from fedmpi.analysis.page.sections import COSTS, Section, cells_legend, costs, leaders, with_spread
from fedmpi.analysis.page.settings import Cell, Setting
from fedmpi.analysis.page.tables import Cell as Entry
from fedmpi.analysis.page.tables import Heading, table, with_interval, words

ACCURACY, F1, PROBE = "clustering_accuracy", "clustering_f1", "probe_accuracy"

_FIGURES = {
    ACCURACY: Heading("clustering accuracy %", "all graphs, last round, mean over seeds ± 95 % interval"),
    F1: Heading("macro F1 %", "of the same clusters"),
    PROBE: Heading("probe %", "logistic regression on the same vectors, five-fold; not in the papers"),
}
_CURVES = {
    ACCURACY: ("Clustering accuracy", "%", 100.0),
    F1: ("Macro F1", "%", 100.0),
    PROBE: ("Probe accuracy", "%", 100.0),
    "train_loss": ("Training loss", "nat", 1.0),
}


def score(cell: Cell, figure: str = ACCURACY) -> Estimate:
    """Return the mean over seeds of a score in the last evaluated round."""
    return estimate(np.array([run.summary.get(figure, np.nan) for run in cell.runs.values()]))


def ahead(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of the highest clustering accuracy: several where they tie."""
    return leaders(cells, lambda cell: 100 * score(cell).mean, 2)


def lead(first: Cell, second: Cell) -> Estimate:
    """Return the mean difference of clustering accuracies over the seeds that both have."""
    seeds = [seed for seed in first.runs if seed in second.runs]
    gaps = [first.runs[seed].summary[ACCURACY] - second.runs[seed].summary[ACCURACY] for seed in seeds]
    return estimate(np.array(gaps))


def majority(setting: Setting) -> float:
    """Return the share of the largest class: what one cluster for all graphs would score."""
    first = next(iter(setting.cells[0].runs.values()))
    if first.holdings is None:
        return float("nan")
    counts = first.holdings.counts.sum(axis=0)
    return float(counts.max() / counts.sum())


def clusters(settings: Sequence[Setting]) -> Section:
    """Return the table of all methods, and their scores by round."""
    present = [name for name in _FIGURES if any(_has(cell, name) for each in settings for cell in each.cells)]
    headings = [Heading("dataset"), Heading("method"), *(_FIGURES[name] for name in present)]
    headings += [Heading("largest class %", "what one cluster for all graphs would score"), *COSTS]
    rows = [_row(each, cell, present) for each in settings for cell in each.cells]
    note = Markup(
        '<p class="note">★ the best of a dataset; of those that tie as printed, each. One k-means over '
        "the vectors of all clients' graphs, "
        "matched to the classes one to one; no round is chosen. These runs have no accuracy by client.</p>"
    )
    parts = [table("Every dataset and method by its clusters", headings, rows, "clusters-cells"), note]
    parts.append(cells_legend([cell for each in settings for cell in each.cells]))
    for each in settings:
        parts.append(Markup(f'<h3>{escape(each.heading)}</h3><div class="grid wide">'))
        for field, (title, unit, factor) in _CURVES.items():
            cells = [cell for cell in each.cells if _drawable(cell, field)]
            if cells:
                axes = Axes(title, each.heading, f"{title.lower()} ({unit})", log=False, factor=factor)
                parts.append(lines(axes, [with_spread(cell, _curves(cell, field)) for cell in cells]))
        parts.append(Markup("</div>"))
    return Section("clusters", "Unsupervised runs by their clusters", Markup("").join(parts))


def _has(cell: Cell, figure: str) -> bool:
    return any(figure in run.summary for run in cell.runs.values())


def _drawable(cell: Cell, field: str) -> bool:
    return all(field in run.curves and np.isfinite(run.curves[field]).any() for run in cell.runs.values())


def _curves(cell: Cell, field: str) -> list[Float]:
    return [run.curves[field] for run in cell.runs.values()]


def _row(setting: Setting, cell: Cell, present: Sequence[str]) -> list[Entry]:
    best = "best" if len(setting.cells) > 1 and any(cell is each for each in ahead(setting.cells)) else ""
    found = [(score(cell, name), best if name == ACCURACY else "") for name in present]
    scores = [with_interval(100 * each.mean, 100 * each.half, 2, kind) for each, kind in found]
    largest = with_interval(100 * majority(setting), float("nan"))
    return [words(setting.heading), words(cell.label, "name"), *scores, largest, *costs(cell)]
