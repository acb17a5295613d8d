"""What it cost to reach a target: rounds, seconds, bytes, FLOPs, joules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cost:
    """Cost of each round, all [R]: wall seconds, virtual seconds, client bytes (up and down), model FLOPs.

    `joules` are NaN in rounds in which nothing counted them, and None in runs without counters.
    """

    seconds: Float
    virtual_seconds: Float
    client_bytes: Int
    model_flops: Int
    joules: Float | None = None


@dataclass(frozen=True)
class ToTarget:
    """Sums from the first round up to and including the one that reached the target.

    `joules` is None where they were not counted in all of these rounds.
    """

    rounds: int
    seconds: float
    virtual_seconds: float
    client_bytes: int
    model_flops: int
    joules: float | None = None


def first_round(scores: Float, target: float, higher: bool = True) -> int | None:
    """Return the first round (0-based) whose score is at least `target`; None if never.

    At most, if not `higher`: where lower scores are better.
    """
    reached = np.flatnonzero(scores >= target if higher else scores <= target)
    return int(reached[0]) if len(reached) else None


def to_target(scores: Float, target: float, cost: Cost, higher: bool = True) -> ToTarget | None:
    """Return what reaching `target` took; None if it never was.

    Parameters
    ----------
    scores : float64 [R]
        On validation data; on test data only for figures labelled so. NaN in rounds without evaluation.
    cost : Cost
    target : float
        In the score's unit.
    higher : bool
        Whether higher scores are better.
    """
    index = first_round(scores, target, higher)
    if index is None:
        return None
    upto = slice(0, index + 1)
    joules = None if cost.joules is None else float(cost.joules[upto].sum())
    return ToTarget(
        rounds=index + 1,
        seconds=float(cost.seconds[upto].sum()),
        virtual_seconds=float(cost.virtual_seconds[upto].sum()),
        client_bytes=int(cost.client_bytes[upto].sum()),
        model_flops=int(cost.model_flops[upto].sum()),
        joules=None if joules is None or np.isnan(joules) else joules,
    )
