"""Cells of the page, the leads of one over another, and settings: cells that can be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedmpi.analysis.cells import Cell as GeneralCell
from fedmpi.analysis.cells import grouped, without
from fedmpi.analysis.columns import score
from fedmpi.analysis.page.collect import Digest, Float
from fedmpi.analysis.scores import LAST
from fedmpi.judging.estimates import THE_SAME, Estimate, corrected, estimate
from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric
from fedmpi.registry.algorithms import ALGORITHMS

EQUAL = "equal"
"""Verdict on a cell whose runs have the models and scores of the reference's in every round."""

SAME_SCORE = "same last score"
"""Verdict on a cell whose runs score in the last round what the reference's do, and differ elsewhere, or in
their seeds."""


@dataclass(frozen=True, eq=False)
class Cell(GeneralCell[Digest]):
    """A cell, and how it looks in charts."""

    label: str
    colour: int
    dash: int

    def values(self, rule: str = LAST, seeds: Sequence[int] | None = None) -> Float:
        """Return the headline [seeds, clients], or [seeds, 1] where clients have no value of their own."""
        return np.array([self.runs[seed].values[rule] for seed in (self.runs if seeds is None else seeds)])

    def score(self, rule: str = LAST) -> Estimate:
        """Return the mean over seeds of the headline, over clients where each has a value."""
        return estimate([clients.mean(run.values[rule]) for run in self.runs.values() if rule in run.values])

    def lead(self, other: Cell) -> Estimate:
        """Return how much better it is than another, by the headline, paired by the seeds that both have."""
        seeds = [seed for seed in self.runs if seed in other.runs]
        pairs = [(self.runs[seed], other.runs[seed]) for seed in seeds]
        gaps = [clients.mean(own.values[LAST]) - clients.mean(its.values[LAST]) for own, its in pairs]
        return estimate(self.metric.sign * np.array(gaps))

    def equals(self, other: Cell) -> bool:
        """Return whether both have the same seeds, and by each the same models and scores in all rounds."""
        own, its = ({seed: run.rounds_digest for seed, run in cell.runs.items()} for cell in (self, other))
        return own == its

    @property
    def never_split(self) -> bool:
        """Whether its groups could split and did not: all clients are one group."""
        could = self.algorithm in ALGORITHMS and "splits" in ALGORITHMS[self.algorithm].decides
        return could and self.mean("splits") == 0

    def figure(self, name: str) -> Estimate:
        """Return the mean over seeds of a figure of the runs' summaries."""
        return estimate([run.summary.get(name, np.nan) for run in self.runs.values()])

    def mean(self, name: str) -> float:
        """Return that mean alone; NaN where a run lacks the figure."""
        return float(np.mean([run.summary.get(name, np.nan) for run in self.runs.values()]))


@dataclass(frozen=True)
class Lead:
    """How far a cell is ahead of the reference.

    Attributes
    ----------
    gap : Estimate
        Of the differences by seed, positive where the cell is better.
    over : Cell
        The reference.
    p_value : float
        After Holm over all leads of the setting; NaN where there is no interval, or no difference.
    equal : bool
        Whether the cell equals the reference in every round.
    """

    gap: Estimate
    over: Cell
    p_value: float
    equal: bool

    @property
    def reach(self) -> tuple[float, float]:
        """The ends of its interval; where there is none, the gap itself."""
        half = 0.0 if math.isnan(self.gap.half) else self.gap.half
        return self.gap.mean - half, self.gap.mean + half

    def figure(self, metric: Metric) -> str:
        """Return it as people read it, with half the width of its interval where it has one."""
        return score(metric, self.gap, sign="+").text

    @property
    def verdict(self) -> str:
        """Better, worse or undecided; where the scores are the same, whether the rounds before are, too."""
        found = self.gap.verdict(p_value=self.p_value)
        return (EQUAL if self.equal else SAME_SCORE) if found == THE_SAME else found


@dataclass(frozen=True)
class Setting:
    """Cells that can be compared: alike in all but algorithm and rounds, or but the unsupervised method.

    `clients` are those of the first; of all, where the headline is one by client. Leads are over the
    algorithm `against`. `name` is the dataset's, with its model where it has several; `differs` has what
    sets it apart from other settings of that name, values by dotted key.
    """

    heading: str
    clients: tuple[str, ...]
    cells: tuple[Cell, ...]
    against: str
    name: str
    differs: Mapping[str, str]

    @property
    def metric(self) -> Metric:
        """The headline of the runs."""
        return self.cells[0].metric

    @property
    def metrics(self) -> list[Metric]:
        """All metrics of the runs, the headline first."""
        runs = [run for cell in self.cells for run in cell.runs.values()]
        return list({metric.name: metric for run in runs for metric in run.metrics}.values())

    def reference(self, cell: Cell, algorithm: str) -> Cell | None:
        """Return an algorithm's cell that another is set against.

        The one that is alike but for the algorithm; else of as many rounds, else of the most.
        """
        found = [each for each in self.cells if each.algorithm == algorithm]
        own = without(cell.config, "algorithm")
        alike = [each for each in found if without(each.config, "algorithm") == own]
        same = [each for each in found if each.config["rounds"] == cell.config["rounds"]]
        return max(alike or same or found, key=lambda each: int(each.config["rounds"]), default=None)

    @cached_property
    def leads(self) -> dict[Cell, Lead]:
        """The cells that are set against a reference, with their leads over it."""
        over = {cell: self.reference(cell, self.against) for cell in self.cells}
        pairs = [(cell, other) for cell, other in over.items() if other and other is not cell]
        gaps = [cell.lead(other) for cell, other in pairs]
        return {
            cell: Lead(gap, other, p_value, cell.equals(other))
            for (cell, other), gap, p_value in zip(pairs, gaps, corrected(gaps), strict=True)
        }

    def lead(self, cell: Cell) -> Lead | None:
        """Return how far a cell is ahead of its reference; None where it is the reference."""
        return self.leads.get(cell)


Line = tuple[Setting, Cell]
"""A line of a table of cells."""


def by_metric(settings: Iterable[Setting]) -> list[list[Setting]]:
    """Return settings in groups of one headline."""
    return list(grouped(settings, lambda each: each.metric.name).values())


def lines(settings: Sequence[Setting]) -> list[Line]:
    """Return a line per dataset and algorithm."""
    return [(each, cell) for each in settings for cell in each.cells]


def direction(metric: Metric) -> str:
    """Return in words which way a metric is better."""
    return f"{metric.better} is better"
