"""Scores over all clients' graphs in figures: of a run, and by task."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedmpi.metrics.headline import NAMES, SCORES, headline
from fedmpi.store.reader import Run


def score_figures(run: Run) -> dict[str, Any]:
    """Return the headline score under the three selection rules, where it is not accuracy.

    Beside it the other scores of the last evaluated round, and how many tasks have none there.
    """
    found = headline(run.results)
    if found is None:
        return {}
    constant = run.partition.get("constant_rmse")
    return {
        "score": found.name,
        "test_score": found.last,
        "test_score_best_by_validation": found.best_by_validation,
        "test_score_as_published": found.as_published,
        "test_score_constant": 0.5 if constant is None else float(np.nanmean(constant)),
        **_further(run),
    }


def _further(run: Run) -> dict[str, float | int]:
    names = [f"test_{field}" for field in SCORES if field not in NAMES]
    last = last_evaluated(run)
    found: dict[str, float | int] = {
        name: math.nan if last is None else float(run.results[name][last])
        for name in names
        if name in run.results
    }
    if last is not None and "test_tasks_left_out" in run.results:
        found["test_tasks_left_out"] = int(run.results["test_tasks_left_out"][last])
    return found


def last_evaluated(run: Run) -> int | None:
    """Return the last round (0-based) with a headline score; None if there is none."""
    found = headline(run.results)
    rounds = np.zeros(0, np.int64) if found is None else np.flatnonzero(~np.isnan(found.test))
    return int(rounds[-1]) if len(rounds) else None
