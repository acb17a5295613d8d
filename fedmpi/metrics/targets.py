"""What it cost to reach a target accuracy: rounds, seconds, bytes, FLOPs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cost:
    """Cost of each round, all [R]: wall seconds, virtual seconds, client bytes (up and down), model FLOPs."""

    seconds: Float
    virtual_seconds: Float
    client_bytes: Int
    model_flops: Int


@dataclass(frozen=True)
class ToTarget:
    """Sums from the first round up to and including the one that reached the target."""

    rounds: int
    seconds: float
    virtual_seconds: float
    client_bytes: int
    model_flops: int


def mean_accuracy(accuracy: Float) -> Float:
    """Return the mean over the clients evaluated in each round [R]; NaN where none was.

    Parameters
    ----------
    accuracy : float64 [R, n]
        NaN where a client was not evaluated.
    """
    evaluated = ~np.isnan(accuracy)
    count = evaluated.sum(axis=1)
    total = np.where(evaluated, accuracy, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def first_round(accuracy: Float, target: float) -> int | None:
    """Return the first round (0-based) whose mean accuracy is at least `target`; None if never."""
    reached = np.flatnonzero(mean_accuracy(accuracy) >= target)
    return int(reached[0]) if len(reached) else None


def to_target(accuracy: Float, target: float, cost: Cost) -> ToTarget | None:
    """Return what reaching `target` took; None if it never was.

    Parameters
    ----------
    accuracy : float64 [R, n]
        Validation accuracy; test accuracy only for figures labelled "on test data".
    target : float
        Between 0 and 1.
    """
    index = first_round(accuracy, target)
    if index is None:
        return None
    upto = slice(0, index + 1)
    return ToTarget(
        rounds=index + 1,
        seconds=float(cost.seconds[upto].sum()),
        virtual_seconds=float(cost.virtual_seconds[upto].sum()),
        client_bytes=int(cost.client_bytes[upto].sum()),
        model_flops=int(cost.model_flops[upto].sum()),
    )
