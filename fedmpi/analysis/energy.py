"""Joules of a run, where its machines have counters that it may read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedmpi.store.reader import AttemptRecord, Run
from fedmpi.store.schema import DEVICE_ENERGY, HOST_ENERGY, Array

_PARTS = (HOST_ENERGY[0].name, DEVICE_ENERGY[0].name)
_BY_PHASE = HOST_ENERGY[1].name


def figures(run: Run) -> dict[str, float]:
    """Return the joules of a run by name; empty for a run without counters.

    `joules` is the sum of `host_joules` and `device_joules`, as far as they were counted; NaN where some
    rounds were computed on machines without counters. `train_joules` and so on are those of the phases.
    """
    parts = {name: float(values.sum()) for name, values in _parts(run).items()}
    if not parts:
        return {}
    of_phases = {f"{name}_joules": joules for name, joules in by_phase(run).items()}
    return {"joules": sum(parts.values()), **parts, **of_phases}


def by_round(run: Run) -> Array | None:
    """Return the joules of each round, float64 [R], NaN where none were counted; None without counters."""
    parts = list(_parts(run).values())
    return np.sum(parts, axis=0) if parts else None


def by_phase(run: Run) -> dict[str, float]:
    """Return the joules of processors and memory by phase of the ranks that read them, over all rounds."""
    found: dict[str, float] = {}
    for attempt, kept in _with(run, _BY_PHASE):
        rounds = _over_ranks(attempt.measurements[_BY_PHASE][kept])
        for name, joules in zip(attempt.phases, rounds.sum(axis=0), strict=True):
            found[name] = found.get(name, 0.0) + float(joules)
    return found


def _parts(run: Run) -> dict[str, Array]:
    """Return the joules of each round [R] by what used them."""
    found: dict[str, Array] = {}
    for name in _PARTS:
        for attempt, kept in _with(run, name):
            rows = found.setdefault(name, np.full(run.rounds_completed, np.nan))
            rows[kept + attempt.first_round] = _over_ranks(attempt.measurements[name][kept])
    return found


def _with(run: Run, name: str) -> Iterator[tuple[AttemptRecord, Array]]:
    return (pair for pair in run.kept_rounds() if name in pair[0].measurements)


def _over_ranks(values: Array) -> Array:
    """Return sums over ranks, axis 1, of those that read; NaN where none does."""
    silent = np.isnan(values).all(axis=1)
    sums: Array = np.where(silent, np.nan, np.nansum(values, axis=1))
    return sums
