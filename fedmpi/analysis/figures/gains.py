"""Violins of the clients' gains over self-train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pydantic import Field, model_validator

from fedmpi.analysis.cells import Cell, Config, Float, by_rule, cells, grouped, key, seeds_text, titled
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS, algorithm_name, algorithm_place, dataset_name
from fedmpi.config.tables import look_up
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run

_ALONE = "self-train"
_SIDES: tuple[Literal["low", "high"], ...] = ("low", "high")
_WIDTH = 0.8
_APART = ("algorithm", "rounds")


@dataclass(frozen=True)
class _Gain:
    """A violin or one half: gains [n] of a cell's clients, and over which seeds; none without any."""

    cell: Cell[Run]
    side: int
    values: Float
    seeds: tuple[int, ...]

    @property
    def config(self) -> Config:
        """Configuration of the runs."""
        return self.cell.config


class Gains(Kind):
    """Violins of the clients' gains over self-train (GCFL, Figures 6 to 8).

    The paper's gains are of the accuracies that its code reports, maxima over test accuracies for GCFL and
    GCFL+; here the last round's count unless `rule` says otherwise, and every client is a dot beside the
    violin.

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
    def _belong_together(self) -> Gains:
        if (self.split is None) != (self.sides is None):
            raise ValueError("split and sides belong together: a setting, and its values left and right")
        if self.labels is not None and self.split is None:
            raise ValueError("labels are those of the sides: give split and sides too")
        return self

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return split violins of gains; a cell without its self-train is named in the caption."""
        found = sorted(cells(runs), key=lambda cell: algorithm_place(cell.algorithm))
        references = self._references(found)
        others = [cell for cell in found if cell.algorithm != _ALONE]
        gains = [self._gain(cell, references.get(key(cell.config, *_APART))) for cell in others]
        drawn = [each for each in gains if each.seeds]
        if not drawn:
            raise BadInput("gains: no run has a self-train of the same data, settings and seeds beside it")
        metric = drawn[0].cell.metric
        columns = 2 if self.by == "algorithm" else 1
        figure, axes = style.draw_panels(self._panels(drawn), self._panel, columns=columns, height=2.7)
        for axis in axes:
            axis.set_ylabel(f"gain over self-train{' (points)' * metric.percent}")
        if self.sides is not None:
            labels = self.labels or [f"{self.split} = {str(value).lower()}" for value in self.sides]
            pairs = zip(COLOURS, labels, strict=False)
            handles = [Patch(facecolor=colour, alpha=0.5, label=label) for colour, label in pairs]
            figure.legend(handles=handles, loc="outside upper center", ncols=2)
        epochs = " or ".join(map(str, sorted({cell.rounds for cell in references.values()})))
        rule = self.rule if self.rule != "as published" else "as published: chosen on test data"
        seeds = seeds_text(each.seeds for each in drawn)
        text = f"Gain of a client: its test {metric.title} ({rule}) over that of self-train for "
        text += f"{epochs} rounds, {seeds}. Dots: clients; bars: means over clients."
        style.add_caption(figure, text)
        if bare := dict.fromkeys(each.cell.name for each in gains if not each.seeds):
            style.add_caption(figure, f"Left out, without self-train of the same seeds: {', '.join(bare)}.")
        return figure

    def _references(self, found: Iterable[Cell[Run]]) -> dict[str, Cell[Run]]:
        """Return the self-train of each setting."""
        chosen: dict[str, Cell[Run]] = {}
        for cell in found:
            if cell.algorithm == _ALONE and self.self_train_rounds in (None, cell.rounds):
                other = chosen.setdefault(key(cell.config, *_APART), cell)
                if other is not cell:
                    both = f"{cell.dataset} for {other.rounds} and {cell.rounds} rounds"
                    raise BadInput(f"gains: self-train on {both}: choose one by self_train_rounds")
        return chosen

    def _gain(self, cell: Cell[Run], alone: Cell[Run] | None) -> _Gain:
        """Return how much better each client's mean is than self-train's, over the seeds of both."""
        side, seeds = self._side(cell), tuple(seed for seed in cell.runs if alone and seed in alone.runs)
        if alone is None or not seeds:
            return _Gain(cell, side, np.zeros(0), ())
        own, others = (each.over_seeds(by_rule(self.rule), seeds) for each in (cell, alone))
        return _Gain(cell, side, cell.metric.sign * (own - others), seeds)

    def _side(self, cell: Cell[Run]) -> int:
        """Return 0 for left (and for whole violins), 1 for right."""
        if self.split is None or self.sides is None:
            return 0
        value, (left, right) = look_up(cell.config, self.split), self.sides
        if value not in self.sides:
            found = f"in {cell.first.folder} it is {'no such setting' if value is None else value}"
            raise BadInput(f"gains: {self.split} is to be {left} or {right}, but {found}")
        return self.sides.index(value)

    def _titled(self, gains: Iterable[_Gain], name: str, *apart: str) -> list[tuple[str, list[_Gain]]]:
        """Return gains by configuration but for the sides, under a text of the cell's names."""

        def heading(each: _Gain) -> str:
            cell = each.cell
            dataset, algorithm = dataset_name(cell.dataset), algorithm_name(cell.algorithm)
            return name.format(dataset=dataset, algorithm=algorithm, clients=len(cell.clients))

        return titled(gains, heading, *apart, *([] if self.split is None else [self.split]))

    def _panels(self, drawn: Sequence[_Gain]) -> list[tuple[str, list[_Gain]]]:
        """Return the heading of each panel and its gains."""
        if self.by == "algorithm":
            return self._titled(drawn, "{dataset}, {clients} clients", *_APART)
        by_algorithm = grouped(drawn, lambda each: each.cell.algorithm)
        return [(algorithm_name(name), members) for name, members in by_algorithm.items()]

    def _panel(self, axis: Axes, members: Sequence[_Gain]) -> None:
        """Draw the violins of one panel, side by side."""
        name = "{algorithm}" if self.by == "algorithm" else "{dataset}, n = {clients}"
        violins = self._titled(members, name)
        axis.axhline(0, color="#333333", linewidth=0.8, zorder=1)
        for place, (_, halves) in enumerate(violins):
            for half in halves:
                _half(axis, place, half, whole=self.split is None)
        axis.set_xticks(range(len(violins)), [label.replace(", ", "\n") for label, _ in violins], size=7)
        axis.set_xlim(-0.6, len(violins) - 0.4)
        axis.grid(visible=False, axis="x")


def _half(axis: Axes, place: int, half: _Gain, whole: bool) -> None:
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
