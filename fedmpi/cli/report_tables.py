"""The tables that `report` prints: means by algorithm, runs, clients, label columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fedmpi.analysis.columns import Figures, client_columns, run_columns, task_columns
from fedmpi.analysis.entries import Column, Entry
from fedmpi.analysis.page.cells import Setting, by_metric, direction, lines
from fedmpi.analysis.page.overview import columns
from fedmpi.cli.plain_table import PlainTable
from fedmpi.metrics.metric import Metric

Row = TypeVar("Row")

_HINT = "a wider terminal, `| less -S` or --html FILE shows them"
_MOST_TASKS = 30
_INTERVALS = "±: 95 % interval over seeds (Student's t)."
_EXPLAINED = ("best by validation", "as published", "constant", "without twins")
"""Headings that are explained below the table."""
_ONE_SEED = "One seed each, so no interval."
_LEADS = "A lead is paired by seed, + is better; decided where p < 0.05 after Holm over the dataset's leads."


def mean_tables(settings: Sequence[Setting]) -> list[PlainTable]:
    """Return for each metric that runs are judged by one line per dataset and algorithm."""
    found = []
    for alike in by_metric(settings):
        table = _table(columns(alike), lines(alike))
        table.title = f"By {alike[0].metric.title}, {direction(alike[0].metric)}"
        repeated = any(len(cell.runs) > 1 for _, cell in lines(alike))
        lead = [_LEADS] if repeated and any(len(each.cells) > 1 for each in alike) else []
        notes = (_INTERVALS if repeated else _ONE_SEED, *lead, "--by case shows single runs.")
        table.caption = " ".join(notes)
        meanings = {each.heading: each.meaning for each in columns(alike)}
        table.meanings = {each: meanings[each] for each in _EXPLAINED if each in meanings}
        found.append(table)
    return found


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


def _table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> PlainTable:
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
