"""Loss, accuracy or clusters by round: mean and standard deviation over clients (GCFL, Figure 4; FedCCH, 3).

The paper calls these training curves and draws the test loss. It does not say
whether its band is over clients of one seed or of five; here a client's loss
is averaged over the seeds first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from fedmpi.analysis import scores
from fedmpi.analysis.cells import Cell, Float, cells, grouped, seeds_text, titled
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import algorithm_name, algorithm_place, dataset_name
from fedmpi.analysis.summary import AGREEMENT
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run


class Options(KindOptions):
    """Options of ``losses``.

    Attributes
    ----------
    field : str
        ``test_loss``, ``val_loss``, ``train_loss``, or any other result of the runs such as
        ``test_accuracy``. Of one that is of all clients together, such as ``domain_agreement`` (adjusted Rand
        index of clusters and domains), the mean over rounds stands in the legend.
    first_round : int
        Where the lines begin: the losses of the very first rounds may flatten all that follows.
    log : bool
        Logarithmic axis.
    band : bool
        One standard deviation over clients around each line; of what is of
        all clients together there is none.
    smooth : int
        Rounds whose mean is drawn at the last of them.
    panels : str
        A panel per ``dataset``, or (``settings``) per configuration but for algorithm and rounds.
    """

    field: str = "test_loss"
    first_round: int = Field(1, ge=1)
    log: bool = False
    panels: Literal["settings", "dataset"] = "settings"
    band: bool = True
    smooth: int = Field(1, ge=1)


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return one panel per dataset with a line and a band per algorithm."""
    found = sorted(cells(runs), key=lambda cell: algorithm_place(cell.algorithm))
    for cell in found:
        for name, value in (("first_round", options.first_round), ("smooth", options.smooth)):
            if value > cell.rounds:
                raise BadInput(f"losses: {name} = {value}, but {cell.algorithm} has fewer rounds")
    if options.panels == "settings":
        panels = titled(found, lambda cell: dataset_name(cell.dataset), "algorithm", "rounds")
    else:
        by_dataset = grouped(found, lambda cell: cell.dataset)
        panels = [(dataset_name(name), members) for name, members in by_dataset.items()]
    whole = {_stored(run, options.field).ndim == 1 for run in runs} == {True}
    figure, axes = style.panels(len(panels), height=2.9)
    for axis, (heading, members) in zip(axes, panels, strict=True):
        for label, cell, look in _lines(members):
            _line(axis, cell, options, whole, label, look)
        style.over_rounds(axis, f"{heading}, {len(members[0].clients)} clients")
        axis.set_ylabel(_quantity(options.field, members[0]))
        axis.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")  # over the bands
        if options.log:
            axis.set_yscale("log")
        last = max(cell.rounds for cell in members)
        axis.set_xlim(options.first_round, max(last, options.first_round + 1))
        if not options.log and options.field.endswith("loss"):
            axis.set_ylim(bottom=0)
    seeds = seeds_text(cell.runs for cell in found)
    return style.add_caption(figure, f"{_lines_are(options, whole)} ({seeds}).")


def _quantity(field: str, cell: Cell[Run]) -> str:
    """Return what an axis shows, with its unit."""
    if field == AGREEMENT:
        return "adjusted Rand index with domains"
    parts = [(metric, part) for metric in cell.first.metrics for part in metric.parts]
    if known := [metric.label(part) for metric, part in parts if metric.field(part) == field]:
        return known[0]
    unit = " (nat)" if field.endswith("loss") and cell.metric.unit != "label" else ""
    return f"{field.replace('val', 'validation').replace('_', ' ')}{unit}"


def _lines_are(options: Options, whole: bool) -> str:
    """Return what the caption says of the lines."""
    over = f" and of {options.smooth} rounds" if options.smooth > 1 else ""
    if whole:
        what = "clusters against domains" if options.field == AGREEMENT else "a value of all clients"
        return f"Mean over runs{over} of {what}"
    band = "; thin: one standard deviation over clients around it" if options.band else ""
    return f"Thick: mean over clients{over}{band}"


def _lines(members: Sequence[Cell[Run]]) -> list[tuple[str, Cell[Run], dict[str, Any]]]:
    """Return label, cell and look of a panel's lines."""
    labelled = titled(members, lambda cell: algorithm_name(cell.algorithm))
    looks = style.looks([cell.algorithm for cell in members])
    return [(label, cell, look) for (label, (cell,)), look in zip(labelled, looks, strict=True)]


def _line(
    axis: Axes, cell: Cell[Run], options: Options, whole: bool, label: str, look: dict[str, Any]
) -> None:
    values = cell.over_seeds(lambda run: scores.columns(_stored(run, options.field)))
    mean, spread = (smoothed(line, options.smooth) for line in _over_clients(values))
    if whole:
        label = f"{label}: mean {np.nanmean(values):.2f}"
    rounds = np.flatnonzero(~np.isnan(mean))
    rounds = rounds[rounds + 1 >= options.first_round]
    axis.plot(rounds + 1, mean[rounds], label=label, **look)
    if not options.band or whole:
        return
    low, high = mean - spread, mean + spread
    axis.fill_between(rounds + 1, low[rounds], high[rounds], color=look["color"], alpha=0.08, linewidth=0)
    for edge in (low, high):  # bands lie on each other: their edges tell them apart
        axis.plot(rounds + 1, edge[rounds], **{**look, "linewidth": 0.5, "alpha": 0.8})


def _stored(run: Run, field: str) -> Float:
    """Return a field [R, n] or [R].

    Raises
    ------
    BadInput
        The run has no such field of its clients or of itself, or never a value.
    """
    values = run.results.get(field, np.zeros((1, 1, 1)))
    if values.dtype.kind != "f" or values.shape[1:] not in ((), (len(run.clients),)):
        raise BadInput(f"{run.folder} has no {field}: leave it out, or try --option field=train_loss")
    if np.isnan(values).all():
        why = "; all its datasets may be of one domain" if field == AGREEMENT else ""
        raise BadInput(f"{run.folder}: {field} is never defined there{why}; leave it out")
    return values


def smoothed(values: Float, rounds: int) -> Float:
    """Return means of so many rounds at the last of them, NaN before."""
    if rounds == 1:
        return values
    means = np.full(len(values), np.nan)
    if len(values) >= rounds:
        windows = np.lib.stride_tricks.sliding_window_view(values, rounds)
        with np.errstate(invalid="ignore"):
            means[rounds - 1 :] = np.nansum(windows, axis=1) / (~np.isnan(windows)).sum(axis=1)
    return means


def _over_clients(values: Float) -> tuple[Float, Float]:
    """Return mean and standard deviation (ddof 1; 0 for one client) of [R, n] over clients with a value."""
    present = np.ma.masked_invalid(values)
    return present.mean(axis=1).filled(np.nan), present.std(axis=1, ddof=1).filled(0.0)
