"""Tables of runs, clients and label columns on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from fedmpi.analysis.columns import Figures, client_columns, run_columns, task_columns
from fedmpi.analysis.entries import Column, Entry
from fedmpi.cli.plain_table import PlainTable
from fedmpi.metrics.metric import Metric

_HINT = "a wider terminal, `| less -S` or --html FILE shows them"
_MOST_TASKS = 30


def run_table(rows: Sequence[Figures], metrics: Sequence[Metric]) -> PlainTable:
    """Return one line per run; `metrics` are all that these runs have."""
    return _table(run_columns(rows, metrics), rows)


def client_table(rows: Sequence[Figures], metrics: Sequence[Metric]) -> PlainTable:
    """Return one line per client of a run."""
    return _table(client_columns(rows, metrics), rows)


def task_table(rows: Sequence[Figures], metrics: Sequence[Metric]) -> PlainTable:
    """Return one line per label column of a run with all its metrics, of at most 30 columns."""
    table = _table(task_columns(rows, metrics), rows[:_MOST_TASKS])
    if len(rows) > _MOST_TASKS:
        table.caption = f"... {len(rows) - _MOST_TASKS} more tasks"
    return table


def _table(columns: Sequence[Column[Figures]], rows: Sequence[Figures]) -> PlainTable:
    spare = sorted((each for each in columns if each.spare), key=lambda each: -each.spare)
    left = next(
        (place for place, each in enumerate(columns) if not all(_is_text(each.entry(row)) for row in rows)), 0
    )
    table = PlainTable(
        "", [each.heading for each in columns], left, [each.heading for each in spare], hint=_HINT
    )
    return table.with_lines([each.entry(row).text for each in columns] for row in rows)


def _is_text(entry: Entry) -> bool:
    return entry.value == entry.text
