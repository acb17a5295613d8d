"""What it cost to reach a target, an accuracy or another score: rounds, seconds, bytes, FLOPs."""

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


def first_round(scores: Float, target: float, higher: bool = True) -> int | None:
    """Return the first round (0-based) whose mean score is at least `target`; None if never.

    At most, if not `higher`: where lower scores are better.
    """
    mean = mean_accuracy(scores)
    reached = np.flatnonzero(mean >= target if higher else mean <= target)
    return int(reached[0]) if len(reached) else None


def to_target(scores: Float, target: float, cost: Cost, higher: bool = True) -> ToTarget | None:
    """Return what reaching `target` took; None if it never was.

    Parameters
    ----------
    scores : float64 [R, n]
        On validation data; on test data only for figures labelled so.
    target : float
        In the score's unit: an accuracy between 0 and 1.
    higher : bool
        Whether higher scores are better.
    """
    index = first_round(scores, target, higher)
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
