"""Figures of cells over their repetitions: accuracy, leads, gains over self-train."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.rows import RULES
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.judging.spreads import bootstrap
from fedmpi.reproduction.published import BY_CLIENT, CLUSTERING, POOLED
from fedmpi.reproduction.results import Cell, Float, Repetition

Trio = tuple[Cell, Cell, Cell]
"""A method, another one, and self-train, over which both gain."""

_STEPS_AT = 5
"""Repetitions up to which the error of a number of clients is at least half a client."""

_DIGITS = 12
"""Gains are rounded to these: ties and clients without gain shall not hang on the last bit of a mean."""


@dataclass(frozen=True)
class Gains:
    """Gains of a method's clients over self-train, means over the repetitions that both have.

    Attributes
    ----------
    mean : Estimate
        Over clients, paired.
    least : Estimate
        The smallest gain of a client.
    client : str
        The first client that has it.
    improved : Estimate
        Share of clients that gain at least 0; for its least error see `_floor`.
    clients : int
    """

    mean: Estimate
    least: Estimate
    client: str
    improved: Estimate
    clients: int

    @property
    def ratio(self) -> str:
        """Clients that gain at least 0, of all, as papers print it."""
        return f"{round(self.improved.mean * self.clients)}/{self.clients}"


def column(cell: Cell, metric: str, rule: str) -> str:
    """Return the column of rows that has what papers call a metric, under a selection rule."""
    score = (POOLED | BY_CLIENT).get(metric)
    if score is not None:
        return cell.column(score, rule, by_client=metric in BY_CLIENT)
    return CLUSTERING.get(metric, RULES[rule])


def average(cell: Cell, column: str) -> Estimate | None:
    """Return the mean over clients, those without a value left out; None without runs."""
    return _mean(averages(cell, column))


def lead(ours: Cell, other: Cell, column: str) -> Estimate | None:
    """Return by how much one cell's average is above another's, paired; None without shared repetitions."""
    return _lead(ours, other, column, ours.shared(other))


def lead_of_runs(ours: Cell, other: Cell, column: str) -> Estimate | None:
    """Return the same of a score of whole runs, whatever clients they have."""
    return _lead(ours, other, column, sorted(ours.runs.keys() & other.runs.keys()))


def _lead(ours: Cell, other: Cell, column: str, both: list[Repetition]) -> Estimate | None:
    return difference(averages(ours, column, both), averages(other, column, both))


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


def difference(ours: Float, other: Float) -> Estimate | None:
    """Return the mean difference of paired figures [repetitions]; None without any."""
    return _mean(ours - other)


def _mean(figures: Float) -> Estimate | None:
    return estimate(figures).rounded() if len(figures) else None


def gains(ours: Cell, alone: Cell, column: str) -> Gains | None:
    """Return the gains over self-train under one selection rule; None where no repetition is shared."""
    both = ours.shared(alone)
    if not both:
        return None
    gaps = ours.values(column, both) - alone.values(column, both)
    clients = gaps.shape[1]
    each = _rounded(gaps.mean(axis=0))
    return Gains(
        mean=estimate(np.nanmean(gaps, axis=1)).rounded(),
        least=bootstrap(gaps, lambda means: _rounded(means).min(axis=-1)),
        client=ours.clients()[int(each.argmin())],
        improved=bootstrap(gaps, lambda means: (_rounded(means) >= 0).mean(axis=-1), floor=_floor(gaps)),
        clients=clients,
    )


def part_gained(ours: Cell, alone: Cell, column: str) -> Estimate | None:
    """Return by which part of another average one is above it, paired; None without shared repetitions."""
    both = ours.shared(alone)
    if not both:
        return None
    figures = [averages(cell, column, both) for cell in (ours, alone)]
    return bootstrap(np.stack(figures, axis=1), lambda means: means[..., 0] / means[..., 1] - 1)


def more_improved(cells: Trio, column: str, times: int = 1) -> Estimate | None:
    """Return the share of clients that a method improves less so many times another's, or None."""
    found = _two_gains(cells, column)
    if found is None:
        return None
    clients = found.shape[1] // 2
    return bootstrap(
        found, lambda means: _more(_rounded(means) >= 0, times), floor=_floor(found[:, :clients])
    )


def least_lead(cells: Trio, column: str) -> Estimate | None:
    """Return by how much a method's smallest gain is above another's, or None."""
    found = _two_gains(cells, column)
    return None if found is None else bootstrap(found, _least_lead)


def _floor(gaps: Float) -> float:
    """Return the least error of a share of clients, from gains [repetitions, clients].

    It is half a client, and shrinks beyond five repetitions as the error of a mean does: a number of clients
    moves in steps, and few repetitions that all agree on one do not tell that it is right.
    """
    count, clients = gaps.shape
    return float(0.5 / clients * min(1.0, math.sqrt(_STEPS_AT / count)))


def _two_gains(cells: Trio, column: str) -> Float | None:
    """Return the gains of a method's clients and then another's, [repetitions, twice the clients]."""
    ours, other, alone = cells
    third = set(other.shared(alone))
    both = [one for one in ours.shared(alone) if one in third]
    if not both:
        return None
    first, second, none = (cell.values(column, both) for cell in (ours, other, alone))
    return np.concatenate([first - none, second - none], axis=1)


def _more(improved: npt.NDArray[np.bool_], times: int) -> Float:
    first, second = np.split(improved, 2, axis=-1)
    return np.asarray(first.mean(axis=-1) - times * second.mean(axis=-1))


def _least_lead(means: Float) -> Float:
    first, second = np.split(_rounded(means), 2, axis=-1)
    return np.asarray(first.min(axis=-1) - second.min(axis=-1))


def _rounded(values: Float) -> Float:
    return values.round(_DIGITS) + 0.0  # no -0.0
