"""What is not computed yet, and the queue that would fill it, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fedmpi.analysis.names import dataset_name
from fedmpi.analysis.reproduction.cells import Compared
from fedmpi.analysis.reproduction.published import CLUSTERING, SCORES
from fedmpi.analysis.reproduction.results import Cell, Repetition, Results
from fedmpi.analysis.reproduction.tables import markdown, method
from fedmpi.partition.options import SPLIT_SEED


def open_table(found: Sequence[Compared]) -> str:
    """Return the published cells that lack repetitions, a line per cell; empty text where none does."""
    rows = [
        [
            each.published.table,
            each.published.column,
            each.published.row,
            f"{len(each.cell.runs)} of {len(each.cell.runs) + len(each.missing)}",
            f"`{each.published.command}`",
        ]
        for each in found
        if each.missing and each.published.metric in ("average", *list(CLUSTERING)[:1], *SCORES)
    ]
    return markdown(["table", "column", "method", "seeds at hand", "command"], rows) if rows else ""


def queue_table(results: Results, suites: Sequence[str]) -> str:
    """Return what each suite has not run yet, with the time that equal cases took; empty if all is run."""
    rows = []
    for suite in suites:
        groups: dict[tuple[str, str], list[Cell]] = {}
        planned = results.planned(suite)
        by_split = len({each.split_seed for _, missing in planned for each in missing} - {SPLIT_SEED}) > 1
        for cell, missing in planned:
            if missing:
                repetitions = ", ".join(dict.fromkeys(_name(each, by_split) for each in missing))
                groups.setdefault((cell.key.dataset, repetitions), []).append(cell)
        lacking = {cell.key: len(missing) for cell, missing in planned}
        for (dataset, repetitions), cells in groups.items():
            methods = "; ".join(dict.fromkeys(method(cell.key) for cell in cells))
            count = sum(lacking[cell.key] for cell in cells)
            times = [_seconds(results, cell) for cell in cells]
            known = [t * lacking[cell.key] for cell, t in zip(cells, times, strict=True) if t is not None]
            minutes = f"{sum(known) / 60:.0f}" if len(known) == len(cells) else "never run"
            rows.append(
                [f"`fedmpi sweep {suite}`", dataset_name(dataset), repetitions, methods, str(count), minutes]
            )
    headings = ["suite", "dataset", "repetitions", "methods", "cases", "minutes on one core, about"]
    return markdown(headings, rows) if rows else ""


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
