"""Figures of cells over their repetitions: accuracy, leads, gains over self-train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.rows import RULES
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.judging.spreads import Figure, bootstrap
from fedmpi.reproduction.published import BY_CLIENT, CLUSTERING, SCORES
from fedmpi.reproduction.results import Cell, Float, Repetition

_STEPS_AT = 5
"""Repetitions up to which the error of a number of clients is at least half a client."""

_DIGITS = 12
"""Gains are rounded to these: ties and clients without gain shall not hang on the last bit of a mean."""


@dataclass(frozen=True)
class Gains:
    """Gains of a method's clients over self-train, means over the repetitions that both have.

    Attributes
    ----------
    least : Estimate
        The smallest gain of a client.
    client : str
        The first client that has it.
    improved : Estimate
        Share of clients that gain at least 0; for its least error see `_floor`.
    clients : int
    """

    least: Estimate
    client: str
    improved: Estimate
    clients: int


def column(cell: Cell, metric: str, rule: str) -> str:
    """Return the column of rows that has what papers call a metric, under a selection rule."""
    if metric in SCORES:
        return cell.column(SCORES[metric], rule, by_client=metric in BY_CLIENT)
    return CLUSTERING.get(metric, RULES[rule])


def average(cell: Cell, column: str) -> Estimate | None:
    """Return the mean over clients, those without a value left out; None without runs."""
    return _mean(averages(cell, column))


def lead(
    ours: Cell, other: Cell, column: str, over: str = "", *, whole_runs: bool = False
) -> Estimate | None:
    """Return by how much one cell's average is above another's, paired; None without shared repetitions.

    Parameters
    ----------
    ours, other : Cell
    column : str
    over : str
        The column of the other cell; by default the same.
    whole_runs : bool
        Whether it is a score of whole runs, whatever clients they have.
    """
    both = sorted(ours.runs.keys() & other.runs.keys()) if whole_runs else ours.shared(other)
    return _mean(averages(ours, column, both) - averages(other, over or column, both))


def averages(cell: Cell, column: str, repetitions: list[Repetition] | None = None) -> Float:
    """Return the means over clients, float64 [repetitions], clients without a value left out; NaN of none."""
    values = cell.values(column, repetitions)
    if not values.size:
        return np.zeros(0)
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    found = np.full(len(counts), math.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found


def _mean(figures: Float) -> Estimate | None:
    return estimate(figures).rounded() if len(figures) else None


def gains(ours: Cell, alone: Cell, column: str) -> Gains | None:
    """Return the gains over self-train under one selection rule; None where no repetition is shared."""
    both = ours.shared(alone)
    if not both:
        return None
    gaps = ours.values(column, both) - alone.values(column, both)
    names = sorted(ours.runs[both[0]])
    return Gains(
        least=bootstrap(gaps, least),
        client=names[int(_rounded(gaps.mean(axis=0)).argmin())],
        improved=bootstrap(gaps, improved, _floor(gaps)),
        clients=len(names),
    )


def part_gained(ours: Cell, alone: Cell, column: str) -> Estimate | None:
    """Return by which part of another average one is above it, paired; None without shared repetitions."""
    both = ours.shared(alone)
    if not both:
        return None
    figures = [averages(cell, column, both) for cell in (ours, alone)]
    return bootstrap(np.stack(figures, axis=1), lambda means: means[..., 0] / means[..., 1] - 1)


def gains_apart(cells: Sequence[Cell], column: str, figure: Figure, times: int = 1) -> Estimate | None:
    """Return a figure of a method's gains less so many times that of another one's gains.

    Parameters
    ----------
    cells : sequence of Cell
        The method, the other one, and what both gain over.
    column : str
    figure : callable
        `least` or `improved`.
    times : int

    Returns
    -------
    Estimate or None
        None where they share no repetition.
    """
    ours, other, alone = cells
    third = set(other.shared(alone))
    both = [one for one in ours.shared(alone) if one in third]
    if not both:
        return None
    first, second, none = (cell.values(column, both) for cell in cells)

    def apart(means: Float) -> Float:
        mine, others = np.split(means, 2, axis=-1)
        return np.asarray(figure(mine) - times * figure(others))

    floor = _floor(first) if figure is improved else 0.0
    return bootstrap(np.concatenate([first - none, second - none], axis=1), apart, floor)


def ratio(share: Estimate, clients: int) -> str:
    """Return a share of clients as papers print it: how many of how many."""
    return f"{round(share.mean * clients)}/{clients}"


def least(gains: Float) -> Float:
    """Return the smallest gain of a client, from gains [..., clients]."""
    return np.asarray(_rounded(gains).min(axis=-1))


def improved(gains: Float) -> Float:
    """Return the share of clients that gain at least 0, from gains [..., clients]."""
    return np.asarray((_rounded(gains) >= 0).mean(axis=-1))


def _floor(gaps: Float) -> float:
    """Return the least error of a share of clients, from gains [repetitions, clients].

    It is half a client, and shrinks beyond five repetitions as the error of a mean does: a number of clients
    moves in steps, and few repetitions that all agree on one do not tell that it is right.
    """
    count, clients = gaps.shape
    return float(0.5 / clients * min(1.0, math.sqrt(_STEPS_AT / count)))


def _rounded(values: Float) -> Float:
    return values.round(_DIGITS) + 0.0  # no -0.0
