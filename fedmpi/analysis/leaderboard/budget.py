"""What tuning buys: the expected score of each method by the number of candidates that are tried."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.board import CONSTANT, Board
from fedmpi.analysis.leaderboard.costs import mean
from fedmpi.analysis.leaderboard.rows import Row, mean_val
from fedmpi.judging.search import expected_score

BUDGETS = (1, 2, 4, 8, 16, 24)


def tried(found: Board, method: str) -> list[int]:
    """Return how many candidates of different settings a method had on each finished federation."""
    entries = (found.entry(data, method) for data in found.finished)
    return [len({row.settings for row in entry.tuning}) for entry in entries if entry.tuning]


def diverged(found: Board, method: str) -> float:
    """Return the share of a method's runs of the tuning that have diverged, on the finished federations."""
    return mean(
        row.status == "diverged" for data in found.finished for row in found.entry(data, method).tuning
    )


def expected(found: Board, method: str) -> list[float]:
    """Return a method's expected score by `BUDGETS`, mean over the finished federations.

    NaN where it cannot run on one, and for more candidates than were tried.
    """
    most = min(tried(found, method), default=0)
    draws = [count for count in BUDGETS if count <= most]
    tables = [_expected_on(found, data, method, draws) for data in found.finished]
    known = np.mean(tables, axis=0).tolist() if tables else []
    return known + [math.nan] * (len(BUDGETS) - len(known))


def curves(found: Board) -> tuple[list[int], dict[str, list[float]]]:
    """Return the numbers of candidates, and the expected scores of ranked methods that are known for all.

    The best with the most candidates comes first.
    """
    most = max((min(counts) for each in found.competitors if (counts := tried(found, each))), default=0)
    shown = [count for count in BUDGETS if count <= most]
    scores = {method: expected(found, method)[: len(shown)] for method in found.competitors}
    whole = {method: each for method, each in scores.items() if shown and not np.isnan(each).any()}
    order = sorted(whole, key=lambda method: -found.metric.sign * whole[method][-1])
    return shown, {method: whole[method] for method in order}


def _expected_on(found: Board, data: str, method: str, draws: Sequence[int]) -> list[float]:
    """Return the expected score on a federation; a diverged candidate scores what a constant does."""
    candidates = list(grouped(found.entry(data, method).tuning, lambda row: row.settings).values())
    if not candidates:
        return [math.nan] * len(draws)
    constant = mean(found.by_seed(data, CONSTANT).values())
    val = [found.metric.sign * mean_val(rows) for rows in candidates]
    return expected_score(val, [_test(rows, constant) for rows in candidates], draws)


def _test(rows: Sequence[Row], diverged: float) -> float:
    """Return a candidate's mean test score over the tuning's seeds, or another if one run has diverged."""
    scores = [row.test for row in rows]
    return diverged if any(math.isnan(each) for each in scores) else float(np.mean(scores))
