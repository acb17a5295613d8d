"""Scores over all clients' graphs in figures: of a run, and by task."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedmpi.metrics.headline import NAMES, SCORES, Float, headline
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
    last = _last_evaluated(run)
    found: dict[str, float | int] = {
        name: math.nan if last is None else float(run.results[name][last])
        for name in names
        if name in run.results
    }
    if last is not None and "test_tasks_left_out" in run.results:
        found["test_tasks_left_out"] = int(run.results["test_tasks_left_out"][last])
    return found


def task_rows(run: Run) -> list[dict[str, Any]]:
    """Return all scores of each task in the last evaluated round; nothing of runs that have no tasks."""
    last = _last_evaluated(run)
    columns = {} if last is None else {name: values[last] for name, values in by_task(run).items()}
    return [
        {"task": task, **{name: float(values[place]) for name, values in columns.items()}}
        for place, task in enumerate(task_names(run))
    ]


def task_names(run: Run) -> list[str]:
    """Return the names of a run's tasks; none where each graph has one class."""
    return [str(name) for name in run.partition.get("task_names", ())]


def by_task(run: Run) -> dict[str, Float]:
    """Return the scores by round and task [R, tasks], named as the scores over all tasks are."""
    names = [(f"{part}_{field}", f"{part}_task_{field}") for field in SCORES for part in ("test", "val")]
    return {name: run.results[stored] for name, stored in names if stored in run.results}


def by_round(run: Run) -> dict[str, Float]:
    """Return the scores over all tasks by round [R]; of a record whose graphs have one class none."""
    names = [f"{part}_{field}" for field in SCORES for part in ("test", "val")]
    return {name: run.results[name] for name in names if name in run.results}


def _last_evaluated(run: Run) -> int | None:
    """Return the last round (0-based) with a headline score; None if there is none."""
    found = headline(run.results)
    rounds = np.zeros(0, np.int64) if found is None else np.flatnonzero(~np.isnan(found.test))
    return int(rounds[-1]) if len(rounds) else None
