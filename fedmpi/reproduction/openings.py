"""What is not computed yet, and the queue that would fill it, as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.names import dataset_name
from fedmpi.partition.options import SPLIT_SEED
from fedmpi.reproduction.cells import Compared
from fedmpi.reproduction.published import CLUSTERING, SCORES
from fedmpi.reproduction.results import Cell, Repetition, Results
from fedmpi.reproduction.tables import method, page_table

_SCORED = ("average", next(iter(CLUSTERING)), *SCORES)
"""Metrics of which each cell has one."""


def coverage(found: Sequence[Compared]) -> dict[int, int]:
    """Return how many published cells have how many repetitions, ascending; other readings are no cells."""
    cells = grouped([each for each in found if not each.published.reading], lambda each: each.published.cell)
    counts = Counter(max(len(each.cell.runs) for each in members) for members in cells.values())
    return dict(sorted(counts.items()))


def coverage_table(papers: Mapping[str, Mapping[int, int]]) -> str:
    """Return a line per paper: cells published, with how many repetitions, not run."""
    runs = sorted({count for each in papers.values() for count in each if count})
    rows = [
        [name, sum(each.values()), *(each.get(count, 0) for count in (*runs, 0))]
        for name, each in papers.items()
    ]
    return page_table(["paper", "cells published", *map(_with_runs, runs), "not run"], rows)


def _with_runs(count: int) -> str:
    return f"with {count} run{'s' * (count > 1)}"


def coverage_text(found: Sequence[Compared]) -> str:
    """Return the same of one paper as a sentence."""
    counts = coverage(found)
    parts = [f"{cells} {_with_runs(count)}" for count, cells in reversed(counts.items()) if count]
    parts.append(f"{counts.get(0, 0)} not run")
    return f"- {sum(counts.values())} cells published: {', '.join(parts)}.\n"


def lacking_table(found: Sequence[Compared]) -> str:
    """Return the published cells that cannot be computed, and what it takes; empty text where all can."""
    lacking = [each.published for each in found if each.published.lacks]
    places = grouped(lacking, lambda each: (each.place, each.column, each.lacks, each.suite))
    rows = []
    for (table, column, lacks, suite), members in places.items():
        names = dict.fromkeys(each.row for each in members)
        command = f"`fedmpi sweep {suite}`" if suite else None
        rows.append([table, column, len(names), ", ".join(names), lacks, command])
    return page_table(["table", "column", "cells", "methods", "lacks", "command"], rows) if rows else ""


def open_table(found: Sequence[Compared]) -> str:
    """Return the published cells that lack repetitions alone, a line per cell; empty text where none does."""
    cells = {
        (each.published.place, each.published.column, each.published.row): each
        for each in found
        if each.cell.missing and not each.published.lacks and each.published.metric in _SCORED
    }
    rows = []
    for place, each in cells.items():
        there, lacking = len(each.cell.runs), len(each.cell.missing)
        rows.append([*place, f"{there} of {there + lacking}", f"`{each.published.command}`"])
    return page_table(["table", "column", "method", "seeds at hand", "command"], rows) if rows else ""


def queue_table(results: Results, suites: Sequence[str]) -> str:
    """Return what each suite has not run yet, with the time that equal cases took; empty if all is run."""
    rows = [row for suite in suites for row in _queue(results, suite)]
    headings = ["suite", "dataset", "repetitions", "methods", "cases", "minutes on one core, about"]
    return page_table(headings, rows) if rows else ""


def _queue(results: Results, suite: str) -> list[list[object]]:
    """Return what a suite has not run yet, by dataset and repetitions."""
    lacking = [cell for cell in results.planned(suite) if cell.missing]
    by_split = len({one.split_seed for cell in lacking for one in cell.missing} - {SPLIT_SEED}) > 1

    def mark(cell: Cell) -> tuple[str, str]:
        return cell.key.dataset, ", ".join(dict.fromkeys(_name(one, by_split) for one in cell.missing))

    rows: list[list[object]] = []
    for (dataset, repetitions), cells in grouped(lacking, mark).items():
        methods = "; ".join(dict.fromkeys(method(cell.key) for cell in cells))
        times = [_seconds(results, cell) for cell in cells]
        known = [one * len(cell.missing) for one, cell in zip(times, cells, strict=True) if one is not None]
        minutes = f"{sum(known) / 60:.0f}" if len(known) == len(cells) else "never run"
        count = sum(len(cell.missing) for cell in cells)
        rows.append([f"`fedmpi sweep {suite}`", dataset_name(dataset), repetitions, methods, count, minutes])
    return rows


def _name(repetition: Repetition, by_split: bool) -> str:
    """Return what tells a repetition from others: its seed, or its split where the suite has several."""
    if by_split and repetition.split_seed != SPLIT_SEED:
        return f"split {repetition.split_seed}"
    return f"seed {repetition.seed}"


def _seconds(results: Results, cell: Cell) -> float | None:
    """Return the mean wall-clock time of the runs of a configuration; None where there are none."""
    runs = results.cell(cell.key).runs.values()
    times = [float(next(iter(rows.values()))["run_wall_seconds"]) for rows in runs]
    return statistics.fmean(times) if times else None
