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
from fedmpi.reproduction.tables import method
from fedmpi.tables.markdown import markdown_of


def coverage(found: Sequence[Compared]) -> dict[int, int]:
    """Return how many published cells have how many repetitions, ascending; other readings are no cells."""
    cells: dict[tuple[str, str, str], int] = {}
    for each in found:
        if not each.published.reading:
            cells[each.published.cell] = max(cells.get(each.published.cell, 0), len(each.cell.runs))
    return dict(sorted(Counter(cells.values()).items()))


def coverage_table(papers: Mapping[str, Mapping[int, int]]) -> str:
    """Return a line per paper: cells published, with how many repetitions, not run."""
    runs = sorted({count for each in papers.values() for count in each if count})
    headings = [
        "paper",
        "cells published",
        *(f"with {count} run{'s' * (count > 1)}" for count in runs),
        "not run",
    ]
    rows = [
        [name, str(sum(each.values())), *(str(each.get(count, 0)) for count in runs), str(each.get(0, 0))]
        for name, each in papers.items()
    ]
    return markdown_of(headings, rows)


def coverage_text(found: Sequence[Compared]) -> str:
    """Return the same of one paper as a sentence."""
    counts = coverage(found)
    parts = [
        f"{cells} with {count} run{'s' * (count > 1)}" for count, cells in reversed(counts.items()) if count
    ]
    return (
        f"- {sum(counts.values())} cells published: {', '.join([*parts, f'{counts.get(0, 0)} not run'])}.\n"
    )


def lacking_table(found: Sequence[Compared]) -> str:
    """Return the published cells that cannot be computed, and what it takes; empty text where all can."""
    lacking = [each.published for each in found if each.published.lacks]
    places = grouped(lacking, lambda each: (each.place, each.column, each.lacks, each.suite))
    methods = {place: dict.fromkeys(each.row for each in members) for place, members in places.items()}
    rows = [
        [table, column, str(len(names)), ", ".join(names), lacks, f"`fedmpi sweep {suite}`" if suite else "-"]
        for (table, column, lacks, suite), names in methods.items()
    ]
    return markdown_of(["table", "column", "cells", "methods", "lacks", "command"], rows) if rows else ""


def open_table(found: Sequence[Compared]) -> str:
    """Return the published cells that lack repetitions alone, a line per cell; empty text where none does."""
    scored = ("average", *list(CLUSTERING)[:1], *SCORES)
    cells = {
        (each.published.place, each.published.column, each.published.row): each
        for each in found
        if each.missing and not each.published.lacks and each.published.metric in scored
    }
    rows = [
        [
            *place,
            f"{len(each.cell.runs)} of {len(each.cell.runs) + len(each.missing)}",
            f"`{each.published.command}`",
        ]
        for place, each in cells.items()
    ]
    return markdown_of(["table", "column", "method", "seeds at hand", "command"], rows) if rows else ""


def queue_table(results: Results, suites: Sequence[str]) -> str:
    """Return what each suite has not run yet, with the time that equal cases took; empty if all is run."""
    rows = [row for suite in suites for row in _queue(results, suite)]
    headings = ["suite", "dataset", "repetitions", "methods", "cases", "minutes on one core, about"]
    return markdown_of(headings, rows) if rows else ""


def _queue(results: Results, suite: str) -> list[list[str]]:
    """Return what a suite has not run yet, by dataset and repetitions."""
    lacking = [(cell, missing) for cell, missing in results.planned(suite) if missing]
    by_split = len({each.split_seed for _, missing in lacking for each in missing} - {SPLIT_SEED}) > 1

    def mark(pair: tuple[Cell, list[Repetition]]) -> tuple[str, str]:
        names = dict.fromkeys(_name(each, by_split) for each in pair[1])
        return pair[0].key.dataset, ", ".join(names)

    rows = []
    for (dataset, repetitions), pairs in grouped(lacking, mark).items():
        methods = "; ".join(dict.fromkeys(method(cell.key) for cell, _ in pairs))
        count = sum(len(missing) for _, missing in pairs)
        times = [(_seconds(results, cell), len(missing)) for cell, missing in pairs]
        known = [seconds * runs for seconds, runs in times if seconds is not None]
        minutes = f"{sum(known) / 60:.0f}" if len(known) == len(pairs) else "never run"
        rows.append(
            [f"`fedmpi sweep {suite}`", dataset_name(dataset), repetitions, methods, str(count), minutes]
        )
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
