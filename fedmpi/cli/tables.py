"""Tables of runs, clients and tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fedmpi.cli.plain_table import PlainTable
from fedmpi.metrics.headline import SCORES

_HINT = "a wider terminal, `| less -S` or --html FILE shows them"

Column = tuple[str, Callable[[dict[str, Any]], str]]


def number(value: float | None, digits: int = 2) -> str:
    """Return a number for people: "-" for none or NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share as percent with two digits."""
    return number(None if value is None else 100 * value)


def _to_target(row: dict[str, Any], key: str) -> str:
    reached = row["to_target"]
    return "never" if reached is None else number(reached[key], 0 if key == "rounds" else 1)


_RUN: tuple[Column, ...] = (
    ("case", lambda row: row["case"]),
    ("dataset", lambda row: str(row["dataset"])),
    ("algorithm", lambda row: str(row["algorithm"])),
    ("objective", lambda row: str(row["objective"])),
    ("seed", lambda row: str(row["seed"])),
    ("status", lambda row: row["status"]),
    ("rounds", lambda row: f"{row['rounds']}/{row['rounds_planned']}"),
    ("ranks", lambda row: ",".join(map(str, row["ranks"]))),
    ("test acc % last", lambda row: percent(row["test_accuracy"])),
    ("best by validation", lambda row: percent(row["test_accuracy_best_by_validation"])),
    ("as published", lambda row: percent(row["test_accuracy_as_published"])),
    ("without twins", lambda row: percent(row["test_accuracy_without_twins"])),
    ("worst client", lambda row: percent(row["worst_client_accuracy"])),
    ("lowest decile", lambda row: percent(row["lowest_decile_accuracy"])),
    ("s/round median", lambda row: number(row["round_seconds_median"], 3)),
    ("total s", lambda row: number(row["total_seconds"], 1)),
    ("model GFLOP", lambda row: number(row["model_gflop"])),
    ("client MB", lambda row: number(row["client_megabytes"])),
    ("virtual s", lambda row: number(row["virtual_seconds"], 1)),
)
_SPARE = (
    "virtual s",
    "client MB",
    "model GFLOP",
    "total s",
    "s/round median",
    "ranks",
    "without twins",
    "lowest decile",
    "as published",
    "test as published",
    "test of a constant",
    "probe %",
    "worst client",
    "macro F1 %",
    "rounds",
    "s to target",
    "objective",
    "best by validation",
    "test by validation",
    "status",
    "rounds to target",
)
"""Columns of the run table that a narrow terminal does without, the least important first: costs, then
circumstances, then other scores. Case, dataset, algorithm, seed and headline always stay."""

_SCORES: tuple[Column, ...] = (
    ("score", lambda row: row.get("score", "")),
    ("test last", lambda row: number(row.get("test_score"), 4)),
    ("test by validation", lambda row: number(row.get("test_score_best_by_validation"), 4)),
    ("test as published", lambda row: number(row.get("test_score_as_published"), 4)),
    ("test of a constant", lambda row: number(row.get("test_score_constant"), 4)),
)
"""Instead of the columns of accuracy, where no run has any."""

_CLUSTERING: tuple[Column, ...] = (
    ("clustering acc % last", lambda row: percent(row.get("clustering_accuracy"))),
    ("macro F1 %", lambda row: percent(row.get("clustering_f1"))),
)
_PROBE: Column = ("probe %", lambda row: percent(row.get("probe_accuracy")))
"""The same of unsupervised objectives."""

_TARGET: tuple[Column, ...] = (
    ("rounds to target", lambda row: _to_target(row, "rounds")),
    ("s to target", lambda row: _to_target(row, "seconds")),
)
_CLIENT: tuple[Column, ...] = (
    ("client", lambda row: row["client"]),
    ("rounds", lambda row: str(row["rounds"])),
    ("train loss", lambda row: number(row["train_loss"], 4)),
    ("val acc %", lambda row: percent(row["val_accuracy"])),
    ("test acc % last", lambda row: percent(row["test_accuracy"])),
    ("best by validation", lambda row: percent(row["test_accuracy_best_by_validation"])),
    ("as published", lambda row: percent(row["test_accuracy_as_published"])),
    ("without twins", lambda row: percent(row["test_accuracy_without_twins"])),
    ("model GFLOP", lambda row: number(row["model_gflop"])),
    ("client MB", lambda row: number(row["client_megabytes"])),
)
_CLIENT_SCORE: Column = ("test score last", lambda row: number(row.get("test_score"), 4))
_SPARE_OF_CLIENTS = (
    "client MB", "model GFLOP", "without twins", "as published", "rounds", "train loss", "best by validation",
    "val acc %",
)  # fmt: skip


def run_table(rows: Sequence[dict[str, Any]]) -> PlainTable:
    """Return one line per run."""
    return _table([*_columns(rows), *(_TARGET if "target" in rows[0] else ())], rows, _SPARE)


def client_table(rows: Sequence[dict[str, Any]]) -> PlainTable:
    """Return one line per client of a run."""
    scored = any(not math.isnan(row["test_accuracy"]) for row in rows)
    columns = _CLIENT if scored else (*_CLIENT[:3], *_CLIENT[8:])
    if any("test_score" in row for row in rows):
        columns = (*columns[:3], _CLIENT_SCORE, *columns[3:])
    return _table(columns, rows, _SPARE_OF_CLIENTS)


def task_table(rows: Sequence[dict[str, Any]]) -> PlainTable:
    """Return one line per task of a run with all its scores, of at most 30 tasks."""
    names = [name for name in rows[0] if name != "task"]
    columns: list[Column] = [("task", lambda row: row["task"])]
    columns += [(_task_heading(name), partial(_task_score, name)) for name in names]
    table = _table(columns, rows[:_MOST_TASKS])
    if len(rows) > _MOST_TASKS:
        table.caption = f"... {len(rows) - _MOST_TASKS} more tasks"
    return table


_MOST_TASKS = 30


def _task_heading(name: str) -> str:
    part, _, field = name.partition("_")
    return f"{part} {SCORES[field][0]}"


def _task_score(name: str, row: dict[str, Any]) -> str:
    return number(row[name], 4)


def _columns(rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the columns of runs: accuracies, or scores where every run has one, or all of them."""
    first, last = (
        next(place for place, (title, _) in enumerate(_RUN) if title == heading)
        for heading in ("test acc % last", "s/round median")
    )
    scored, clustered = ([name in row for row in rows] for name in ("score", "clustering_accuracy"))
    accuracies = () if all(map(max, scored, clustered)) else _RUN[first:last]
    scores = (*(_CLUSTERING if any(clustered) else ()), *(_SCORES if any(scored) else ()))
    scores = (*scores, *([_PROBE] if any("probe_accuracy" in row for row in rows) else []))
    named = [column for column in _RUN[:first] if column[0] != "objective" or any(clustered)]
    return [*named, *accuracies, *scores, *_RUN[last:]]


def _table(
    columns: Sequence[Column], rows: Sequence[dict[str, Any]], spare: Sequence[str] = ()
) -> PlainTable:
    headings = [heading for heading, _ in columns]
    words = [heading in _WORDS for heading in headings]
    table = PlainTable("", headings, words.index(False) if False in words else len(words), spare, hint=_HINT)
    for row in rows:
        table.add_line(*(text(row) for _, text in columns))
    return table


_WORDS = ("case", "dataset", "algorithm", "objective", "client", "task")
"""Headings of text, which stands left."""
