"""Figures of cells over their repetitions: accuracy, leads, gains over self-train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.reproduction.results import Cell, Float, Repetition
from fedmpi.analysis.reproduction.statistics import Estimate, estimate

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
        Share of clients that gain at least 0; its error is at least half a client.
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
        return f"{round(self.improved.value * self.clients)}/{self.clients}"


def average(cell: Cell, column: str, repetitions: list[Repetition] | None = None) -> Estimate | None:
    """Return the mean over clients, those without a value left out; None without runs."""
    values = cell.values(column, repetitions)
    return _mean(values) if len(values) else None


def lead(ours: Cell, other: Cell, column: str) -> Estimate | None:
    """Return by how much one cell's average is above another's, paired; None without shared repetitions."""
    both = ours.shared(other)
    if not both:
        return None
    gaps = np.nanmean(ours.values(column, both), axis=1) - np.nanmean(other.values(column, both), axis=1)
    return _mean(gaps[:, None])


def gains(ours: Cell, alone: Cell, column: str) -> Gains | None:
    """Return the gains over self-train under one selection rule; None where no repetition is shared."""
    both = ours.shared(alone)
    if not both:
        return None
    gaps = ours.values(column, both) - alone.values(column, both)
    clients = gaps.shape[1]
    each = _rounded(gaps.mean(axis=0))
    return Gains(
        mean=_mean(gaps),
        least=estimate(gaps, lambda means: _rounded(means).min(axis=-1)),
        client=ours.clients()[int(each.argmin())],
        improved=estimate(gaps, lambda means: (_rounded(means) >= 0).mean(axis=-1), floor=0.5 / clients),
        clients=clients,
    )


def _mean(values: Float) -> Estimate:
    by_repetition = np.nanmean(values, axis=1)[:, None]
    return estimate(by_repetition, lambda means: means.mean(axis=-1))


def _rounded(values: Float) -> Float:
    return values.round(_DIGITS) + 0.0  # no -0.0
