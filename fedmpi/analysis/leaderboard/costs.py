"""What a method of a track costs, in FedAvg's costs on the same federation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.leaderboard.board import DIVERGED, Board
from fedmpi.analysis.leaderboard.rows import REFERENCE, Row
from fedmpi.analysis.leaderboard.track import SEEDS

SECONDS = "cpu_seconds_to_target"
TO_TARGET = {
    SECONDS: "time",
    "gflop_to_target": "FLOP",
    "bytes_to_target": "bytes",
    "virtual_seconds_to_target": "virtual time",
}
"""Columns of rows with costs to the target, and what they are called."""


@dataclass(frozen=True)
class Costs:
    """What a method costs, over all finished federations on which it has a score.

    Attributes
    ----------
    kilobytes : float
        Per client and round, up and down: mean over federations.
    flops : float
        Of a run, in FedAvg's on the same federation: geometric mean.
    reached : float
        Share of the runs, diverged ones too, whose validation score becomes as good as their target.
    to_target : mapping
        Of each of `TO_TARGET` what it took until then, in FedAvg's median on the same federation: median over
        the runs; NaN where half of them or more never reach it.
    """

    kilobytes: float
    flops: float
    reached: float
    to_target: Mapping[str, float]


def cost(found: Board, method: str) -> Costs:
    """Return what a method costs."""
    bytes_, flops, reached = [], [], []
    spent: dict[str, list[float]] = {name: [] for name in TO_TARGET}
    for data in found.finished:
        entry, base = found.entry(data, method), found.entry(data, REFERENCE).rows
        rows = entry.rows
        if rows and base:
            bytes_.append(mean(row.bytes_per_client for row in rows))
            flops.append(_ratio(mean(row.model_gflop for row in rows), mean(row.model_gflop for row in base)))
        missed = len(SEEDS) - len(rows) if entry.state == DIVERGED else 0
        missed = missed if any(not math.isnan(row.target) for row in base) else 0
        reached += [not math.isnan(row.rounds_to_target) for row in rows if not math.isnan(row.target)]
        reached += [False] * missed
        for name, ratios in spent.items():
            usual = _median(getattr(row, name) for row in base)
            ratios += [*(_of_run(row, name, usual) for row in rows), *[math.inf] * missed]
    return Costs(
        mean(bytes_) / 1e3,
        math.exp(mean(math.log(each) for each in flops if each)),
        mean(reached),
        {name: _median(ratios) for name, ratios in spent.items()},
    )


def _of_run(row: Row, name: str, usual: float) -> float:
    """Return what a run took until the target; infinity if it never is there, NaN if that is unknown."""
    if math.isnan(row.target):
        return math.nan
    return math.inf if math.isnan(row.rounds_to_target) else _ratio(getattr(row, name), usual)


def _ratio(value: float, base: float) -> float:
    """Return how many times a value is another; NaN where that is 0: less than what was measured."""
    return value / base if base else math.nan


def _median(values: Iterable[float]) -> float:
    """Return the median of what is known; NaN where that is infinite."""
    known = [each for each in values if not math.isnan(each)]
    middle = float(np.median(known)) if known else math.inf
    return middle if middle < math.inf else math.nan


def mean(values: Iterable[float]) -> float:
    """Return the mean without NaN; NaN where nothing is left."""
    known = [each for each in values if not math.isnan(each)]
    return float(np.mean(known)) if known else math.nan
