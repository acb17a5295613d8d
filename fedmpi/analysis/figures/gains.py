"""Violins of the clients' gains over self-train (GCFL, Figures 6 to 8).

The paper's gains are of the accuracies that its code reports, maxima over test
accuracies for GCFL and GCFL+; here the last round's count unless `rule` says
otherwise, and every client is a dot beside the violin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pydantic import Field, model_validator

from fedmpi.analysis.cells import Cell, Config, Float, by_rule, cells, grouped, key, seeds_text, titled
from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS, algorithm_name, algorithm_place, dataset_name
from fedmpi.config.tables import look_up
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run

_ALONE = "self-train"
_SIDES: tuple[Literal["low", "high"], ...] = ("low", "high")
_WIDTH = 0.8
_APART = ("algorithm", "rounds")


class Options(KindOptions):
    """Options of ``gains``.

    Attributes
    ----------
    by : str
        What has a violin: ``algorithm`` (a panel per dataset) or ``dataset`` (a panel per algorithm).
    split : str or None
        Setting that the halves of a violin differ in, such as ``partition.overlap``.
    sides : pair of setting values or None
        Its values on the left and on the right; belongs to `split`.
    labels : pair of str or None
        What to call the sides; by default setting and value.
    rule : str
        Selection rule of the values: ``last round``, ``best by validation``, ``as published``.
    self_train_rounds : int or None
        Which self-train is the reference where a setting has several; by default the only one.
    """

    by: Literal["algorithm", "dataset"] = "algorithm"
    split: str | None = None
    sides: tuple[bool | int | float | str, bool | int | float | str] | None = None
    labels: tuple[str, str] | None = None
    rule: Literal["last round", "best by validation", "as published"] = "last round"
    self_train_rounds: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _belong_together(self) -> Options:
        if (self.split is None) != (self.sides is None):
            raise ValueError("split and sides belong together: a setting, and its values left and right")
        if self.labels is not None and self.split is None:
            raise ValueError("labels are those of the sides: give split and sides too")
        return self


@dataclass(frozen=True)
class Gain:
    """One half of a violin, or a whole one: gains [n] of the clients, over which seeds."""

    cell: Cell[Run]
    side: int
    values: Float
    seeds: tuple[int, ...]

    @property
    def config(self) -> Config:
        """Configuration of the runs."""
        return self.cell.config


def gain(cell: Cell[Run], alone: Cell[Run], rule: str) -> tuple[Float, tuple[int, ...]]:
    """Return by how much each client's mean is better than self-train's, over shared seeds, and those."""
    seeds = tuple(seed for seed in cell.runs if seed in alone.runs)
    if not seeds:
        return np.full(len(cell.clients), np.nan), ()
    values = by_rule(rule)
    return cell.metric.sign * (cell.over_seeds(values, seeds) - alone.over_seeds(values, seeds)), seeds


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return split violins of the clients' gains; a cell without its self-train is named in the caption."""
    found = sorted(cells(runs), key=lambda cell: algorithm_place(cell.algorithm))
    references = _references(found, options)
    drawn, bare = _gains(found, references, options)
    if not drawn:
        raise BadInput("gains: no run has a self-train of the same data, settings and seeds beside it")
    panels = _panels(drawn, options)
    unit = " (points)" if drawn[0].cell.metric.percent else ""
    columns = 2 if options.by == "algorithm" else 1
    figure, axes = style.draw_panels(panels, partial(_panel, options=options), columns=columns, height=2.7)
    for axis in axes:
        axis.set_ylabel(f"gain over self-train{unit}")
    if options.split is not None:
        _legend(figure, options)
    for line in _caption(drawn, bare, list(references.values()), options):
        style.add_caption(figure, line)
    return figure


def _gains(
    found: Sequence[Cell[Run]], references: Mapping[str, Cell[Run]], options: Options
) -> tuple[list[Gain], list[Cell[Run]]]:
    """Return the gains, and the cells for which there is no self-train of the same seeds."""
    drawn: list[Gain] = []
    bare: list[Cell[Run]] = []
    for cell in found:
        if cell.algorithm == _ALONE:
            continue
        side = _side(cell, options)
        alone = references.get(key(cell.config, *_APART))
        values, seeds = gain(cell, alone, options.rule) if alone is not None else (np.zeros(0), ())
        if seeds:
            drawn.append(Gain(cell, side, values, seeds))
        else:
            bare.append(cell)
    return drawn, bare


def _references(found: Sequence[Cell[Run]], options: Options) -> dict[str, Cell[Run]]:
    """Return the self-train of each setting."""
    chosen: dict[str, Cell[Run]] = {}
    for cell in found:
        wanted = options.self_train_rounds in (None, cell.rounds)
        if cell.algorithm == _ALONE and wanted:
            other = chosen.setdefault(key(cell.config, *_APART), cell)
            if other is not cell:
                both = f"{cell.dataset} for {other.rounds} and {cell.rounds} rounds"
                raise BadInput(f"gains: self-train on {both}: choose one by self_train_rounds")
    return chosen


def _side(cell: Cell[Run], options: Options) -> int:
    """Return 0 for left (and for whole violins), 1 for right."""
    if options.split is None or options.sides is None:
        return 0
    value, (left, right) = look_up(cell.config, options.split), options.sides
    if value not in options.sides:
        found = f"in {cell.first.folder} it is {'no such setting' if value is None else value}"
        raise BadInput(f"gains: {options.split} is to be {left} or {right}, but {found}")
    return options.sides.index(value)


def _apart(options: Options) -> tuple[str, ...]:
    return () if options.split is None else (options.split,)


def _panels(drawn: Sequence[Gain], options: Options) -> list[tuple[str, list[Gain]]]:
    """Return the heading of each panel and its gains."""
    if options.by == "dataset":
        by_algorithm = grouped(drawn, lambda each: each.cell.algorithm)
        return [(algorithm_name(name), members) for name, members in by_algorithm.items()]

    def name(each: Gain) -> str:
        return f"{dataset_name(each.cell.dataset)}, {len(each.cell.clients)} clients"

    return titled(drawn, name, *_APART, *_apart(options))


def _panel(axis: Axes, members: Sequence[Gain], options: Options) -> None:
    """Draw the violins of one panel, side by side."""

    def name(each: Gain) -> str:
        cell = each.cell
        if options.by == "algorithm":
            return algorithm_name(cell.algorithm)
        return f"{dataset_name(cell.dataset)}, n = {len(cell.clients)}"

    violins = titled(members, name, *_apart(options))
    axis.axhline(0, color="#333333", linewidth=0.8, zorder=1)
    for place, (_, halves) in enumerate(violins):
        for half in halves:
            _half(axis, place, half, whole=options.split is None)
    axis.set_xticks(range(len(violins)), [label.replace(", ", "\n") for label, _ in violins], size=7)
    axis.set_xlim(-0.6, len(violins) - 0.4)
    axis.grid(visible=False, axis="x")


def _half(axis: Axes, place: int, half: Gain, whole: bool) -> None:
    """Draw a density, the clients as dots and their mean as a bar; equal values have no density."""
    colour = COLOURS[half.side]
    if len(np.unique(half.values)) > 1:
        side = "both" if whole else _SIDES[half.side]
        parts = axis.violinplot(half.values, [place], widths=_WIDTH, showextrema=False, side=side)
        for body in cast(list[PolyCollection], parts["bodies"]):
            body.set(facecolor=colour, edgecolor=colour, alpha=0.3, linewidth=0.7)
    direction = 0 if whole else (-1, 1)[half.side]
    # The fractional parts of k times the golden ratio fill the strip evenly, in the clients' order.
    strip = (np.arange(len(half.values)) * 0.618034) % 1.0
    across = place + (strip - 0.5) * 0.3 if whole else place + direction * (0.04 + 0.2 * strip)
    axis.scatter(across, half.values, s=7, color=colour, linewidth=0, alpha=0.9, gid="clients")
    left, right = place - 0.25 * (direction <= 0), place + 0.25 * (direction >= 0)
    axis.hlines(half.values.mean(), left, right, color="black", linewidth=1.4, gid="mean")


def _legend(figure: Figure, options: Options) -> None:
    usual = [f"{options.split} = {str(value).lower()}" for value in options.sides or ()]
    sides = enumerate(options.labels or usual)
    handles = [Patch(facecolor=COLOURS[side], alpha=0.5, label=label) for side, label in sides]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)


def _caption(
    drawn: Sequence[Gain], bare: Sequence[Cell[Run]], references: Sequence[Cell[Run]], options: Options
) -> list[str]:
    rounds = sorted({cell.rounds for cell in references})
    epochs = " or ".join(map(str, rounds))
    rule = options.rule if options.rule != "as published" else "as published: chosen on test data"
    seeds = seeds_text(each.seeds for each in drawn)
    lines = [
        f"Gain of a client: its test {drawn[0].cell.metric.title} ({rule}) over that of self-train for "
        f"{epochs} rounds, {seeds}. Dots: clients; bars: means over clients."
    ]
    if bare:
        names = ", ".join(dict.fromkeys(cell.name for cell in bare))
        lines.append(f"Left out, without self-train of the same seeds: {names}.")
    return lines
