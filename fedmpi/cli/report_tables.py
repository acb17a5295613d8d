"""The tables that `report` prints: means by algorithm, runs, clients, label columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedmpi.analysis.columns import Figures, client_columns, run_columns, task_columns
from fedmpi.analysis.page.cells import Line, Setting, by_metric, direction, lines
from fedmpi.analysis.page.overview import columns
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import Table

_HINT = "a wider terminal, `| less -S` or --html FILE shows them"
_MOST_TASKS = 30
_INTERVALS = "±: 95 % interval over seeds (Student's t)."
_EXPLAINED = ("best by validation", "as published", "constant", "without twins")
"""Headings that are explained below the table."""
_ONE_SEED = "One seed each, so no interval."
_LEADS = "A lead is paired by seed, + is better; decided where p < 0.05 after Holm over the dataset's leads."


def mean_tables(settings: Sequence[Setting]) -> list[Table[Line]]:
    """Return for each metric that runs are judged by one line per dataset and algorithm."""
    return [_means(alike) for alike in by_metric(settings)]


def _means(settings: Sequence[Setting]) -> Table[Line]:
    shown = [each if each.heading in _EXPLAINED else replace(each, meaning="") for each in columns(settings)]
    repeated = any(len(cell.runs) > 1 for _, cell in lines(settings))
    lead = [_LEADS] if repeated and any(len(each.cells) > 1 for each in settings) else []
    note = " ".join((_INTERVALS if repeated else _ONE_SEED, *lead, "--by case shows single runs."))
    metric = settings[0].metric
    return Table(shown, lines(settings), f"By {metric.title}, {direction(metric)}", [note], hint=_HINT)


def run_table(rows: Sequence[Figures], metrics: Sequence[Metric], title: str = "") -> Table[Figures]:
    """Return one line per run; `metrics` are all that these runs have."""
    return Table(run_columns(rows, metrics), rows, title, hint=_HINT)


def client_table(rows: Sequence[Figures], metrics: Sequence[Metric]) -> Table[Figures]:
    """Return one line per client of a run."""
    return Table(client_columns(rows, metrics), rows, hint=_HINT)


def task_table(rows: Sequence[Figures], metrics: Sequence[Metric]) -> Table[Figures]:
    """Return one line per label column of a run with all its metrics, of at most 30 columns."""
    more = [f"... {len(rows) - _MOST_TASKS} more tasks"] if len(rows) > _MOST_TASKS else []
    return Table(task_columns(rows, metrics), rows[:_MOST_TASKS], notes=more, hint=_HINT)
