"""Figures as terminal tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fedmpi.metrics.headline import SCORES

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
    ("test acc %\nlast", lambda row: percent(row["test_accuracy"])),
    ("best by\nvalidation", lambda row: percent(row["test_accuracy_best_by_validation"])),
    ("as\npublished", lambda row: percent(row["test_accuracy_as_published"])),
    ("without\ntwins", lambda row: percent(row["test_accuracy_without_twins"])),
    ("worst\nclient", lambda row: percent(row["worst_client_accuracy"])),
    ("lowest\ndecile", lambda row: percent(row["lowest_decile_accuracy"])),
    ("s/round\nmedian", lambda row: number(row["round_seconds_median"], 3)),
    ("total\ns", lambda row: number(row["total_seconds"], 1)),
    ("model\nGFLOP", lambda row: number(row["model_gflop"])),
    ("client\nMB", lambda row: number(row["client_megabytes"])),
    ("virtual\ns", lambda row: number(row["virtual_seconds"], 1)),
)
_DISPENSABLE = (
    "without\ntwins",
    "as\npublished",
    "dataset",
    "algorithm",
    "objective",
    "seed",
    "virtual\ns",
    "lowest\ndecile",
    "ranks",
    "total\ns",
    "client\nMB",
    "model\nGFLOP",
    "status",
    "worst\nclient",
)
"""Columns of the run table that go first on a narrow terminal; the case's name often says the first three."""

_SCORES: tuple[Column, ...] = (
    ("score", lambda row: row.get("score", "")),
    ("test\nlast", lambda row: number(row.get("test_score"), 4)),
    ("test by\nvalidation", lambda row: number(row.get("test_score_best_by_validation"), 4)),
    ("test as\npublished", lambda row: number(row.get("test_score_as_published"), 4)),
    ("test of a\nconstant", lambda row: number(row.get("test_score_constant"), 4)),
)
"""Instead of the columns of accuracy, where no run has any."""

_CLUSTERING: tuple[Column, ...] = (
    ("clustering\nacc % last", lambda row: percent(row.get("clustering_accuracy"))),
    ("macro\nF1 %", lambda row: percent(row.get("clustering_f1"))),
)
_PROBE: Column = ("probe\n%", lambda row: percent(row.get("probe_accuracy")))
"""The same of unsupervised objectives."""

_TARGET: tuple[Column, ...] = (
    ("rounds to\ntarget", lambda row: _to_target(row, "rounds")),
    ("s to\ntarget", lambda row: _to_target(row, "seconds")),
)
_CLIENT: tuple[Column, ...] = (
    ("client", lambda row: row["client"]),
    ("rounds", lambda row: str(row["rounds"])),
    ("train loss", lambda row: number(row["train_loss"], 4)),
    ("val acc %", lambda row: percent(row["val_accuracy"])),
    ("test acc %\nlast", lambda row: percent(row["test_accuracy"])),
    ("best by\nvalidation", lambda row: percent(row["test_accuracy_best_by_validation"])),
    ("as\npublished", lambda row: percent(row["test_accuracy_as_published"])),
    ("without\ntwins", lambda row: percent(row["test_accuracy_without_twins"])),
    ("model\nGFLOP", lambda row: number(row["model_gflop"])),
    ("client\nMB", lambda row: number(row["client_megabytes"])),
)
_CLIENT_SCORE: Column = ("test score\nlast", lambda row: number(row.get("test_score"), 4))
_DISPENSABLE_OF_CLIENTS = (
    "without\ntwins", "as\npublished", "client\nMB", "model\nGFLOP", "rounds", "train loss",
)  # fmt: skip


def run_table(rows: Sequence[dict[str, Any]], width: int) -> Table:
    """Return one line per run; columns that do not fit into `width` are left out and counted below."""
    return _fitted([*_columns(rows), *(_TARGET if "target" in rows[0] else ())], _DISPENSABLE, rows, width)


def client_table(rows: Sequence[dict[str, Any]], width: int) -> Table:
    """Return one line per client of a run, columns left out as in the table of runs."""
    scored = any(not math.isnan(row["test_accuracy"]) for row in rows)
    columns = _CLIENT if scored else (*_CLIENT[:3], *_CLIENT[8:])
    if any("test_score" in row for row in rows):
        columns = (*columns[:3], _CLIENT_SCORE, *columns[3:])
    return _fitted(columns, _DISPENSABLE_OF_CLIENTS, rows, width)


def task_table(rows: Sequence[dict[str, Any]], width: int) -> Table:
    """Return one line per task of a run with all its scores, of at most 30 tasks."""
    names = [name for name in rows[0] if name != "task"]
    columns: list[Column] = [("task", lambda row: row["task"])]
    columns += [(_task_heading(name), partial(_task_score, name)) for name in names]
    table = _fitted(columns, [_task_heading(name) for name in reversed(names)], rows[:_MOST_TASKS], width)
    if len(rows) > _MOST_TASKS:
        more = f"... {len(rows) - _MOST_TASKS} more tasks"
        table.caption = more if table.caption is None else f"{more}; {table.caption}"
        table.caption_justify = "left"
    return table


_MOST_TASKS = 30


def _task_heading(name: str) -> str:
    part, _, field = name.partition("_")
    return f"{part}\n{SCORES[field][0]}"


def _task_score(name: str, row: dict[str, Any]) -> str:
    return number(row[name], 4)


def _fitted(
    columns: Sequence[Column], dispensable: Sequence[str], rows: Sequence[dict[str, Any]], width: int
) -> Table:
    dropped = 0
    for title in dispensable:
        if _natural_width(columns, rows) <= width:
            break
        columns = [column for column in columns if column[0] != title]
        dropped += 1
    table = _table(columns, rows)
    if dropped:
        what = "column does" if dropped == 1 else "columns do"
        table.caption = f"{dropped} {what} not fit; a wider terminal or --json shows more"
        table.caption_justify = "left"
    return table


def _columns(rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the columns of runs: accuracies, or scores where every run has one, or all of them."""
    first, last = (
        next(place for place, (title, _) in enumerate(_RUN) if title == heading)
        for heading in ("test acc %\nlast", "s/round\nmedian")
    )
    scored, clustered = ([name in row for row in rows] for name in ("score", "clustering_accuracy"))
    accuracies = () if all(map(max, scored, clustered)) else _RUN[first:last]
    scores = (*(_CLUSTERING if any(clustered) else ()), *(_SCORES if any(scored) else ()))
    scores = (*scores, *([_PROBE] if any("probe_accuracy" in row for row in rows) else []))
    named = [column for column in _RUN[:first] if column[0] != "objective" or any(clustered)]
    return [*named, *accuracies, *scores, *_RUN[last:]]


def _natural_width(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> int:
    """Return the width at which nothing is folded."""
    cells = [[*title.split("\n"), *(text(row) for row in rows)] for title, text in columns]
    return sum(max(map(len, column)) + 3 for column in cells) + 1


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for index, (title, _) in enumerate(columns):
        table.add_column(
            title, justify="left" if index == 0 else "right", overflow="fold", no_wrap=index == 0
        )
    for row in rows:
        table.add_row(*(Text(text(row)) for _, text in columns))
    return table
