"""What the commands `report` and `records repair` do; each returns its exit code."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedmpi.analysis import rows
from fedmpi.analysis.columns import Figures, client_columns, run_columns, task_columns
from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.entries import Column, Entry
from fedmpi.analysis.scores import TOGETHER, task_rows
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.cli.options import Json, Runs
from fedmpi.cli.plain_table import PlainTable
from fedmpi.cli.terminal import console, left_out, print_json, say, write
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import Run
from fedmpi.store.rebuild import repair as make_whole
from fedmpi.visible import complain_of, visible_lines

if TYPE_CHECKING:
    from fedmpi.analysis.page.build import Page

_HINT = "a wider terminal, `| less -S` or --html FILE shows them"
_MOST_TASKS = 30
_MOST_NAMED = 3
"""Suites that a title names."""


@dataclass(frozen=True)
class Formats:
    """Which texts are wanted, and the machine's rates for the page."""

    html: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a self-contained page with all charts.")
    ] = None
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table: a line per dataset and algorithm.")
    ] = False
    latex: Annotated[bool, typer.Option("--latex", help="Print the same for LaTeX (booktabs).")] = False
    machine: Annotated[
        Path | None,
        typer.Option(help="With --html: what `fedmpi bench train --json` printed, for rooflines."),
    ] = None

    def __bool__(self) -> bool:
        return self.html is not None or self.markdown or self.latex or self.machine is not None


NO_FORMATS = Formats()


def check_target(target: float | None) -> None:
    """Raise BadInput for a target that is none of any metric; one beyond a metric is found with the runs."""
    if target is not None and not math.isfinite(target):
        raise BadInput(f"--target {target}: give a number, for instance 0.7")


def report(
    runs: Runs,
    target: Annotated[
        float | None, typer.Option(help="Accuracy (0 to 1), ROC-AUC or RMSE for the to-target figures.")
    ] = None,
    as_json: Json = False,
    csv: Annotated[Path | None, typer.Option(help="Also write one row per complete run and client.")] = None,
    formats: Formats = NO_FORMATS,
) -> int:
    """Print a table of finished or running cases, or write a page about them.

    Returns
    -------
    int
        0, or 2 if anything was left out, of the averages too (named on the standard error).

    Examples
    --------
    fedmpi report results/runs/gcfl/proteins --target 0.7
    fedmpi report gcfl/table3 --html page.html
    """
    check_target(target)
    code = _write_formats(runs, target, formats) if formats else 0
    return max(code, _print(runs, target, as_json, csv)) if as_json or csv or not formats else code


def _print(paths: Sequence[Path], target: float | None, as_json: bool, csv: Path | None) -> int:
    complaints: list[str] = []
    runs = list(each_run(paths, complaints))
    complain_of(complaints)
    summaries = [summarise(run, target) for run in runs]
    if as_json:
        print_json([_in_full(row, run) for row, run in zip(summaries, runs, strict=True)])
    elif summaries:
        screen = console(sys.stdout)
        screen.print(run_table(summaries, [metric for run in runs for metric in run.metrics]))
        if len(runs) == 1:
            found = per_client(runs[0])
            screen.print(client_table(found, runs[0].metrics) if found else TOGETHER)
            tasks = task_rows(runs[0])
            if tasks:
                screen.print(task_table(tasks, runs[0].metrics))
        for run in runs:
            if run.reason:
                screen.print(f"{run.folder}: {run.reason}")
    if csv is not None:
        _write_rows(csv, [run for run in runs if run.status == "complete"])
    return 2 if complaints else 0


def _in_full(summary: dict[str, Any], run: Run) -> dict[str, Any]:
    tasks = task_rows(run)
    return {**summary, "per_client": per_client(run), **({"per_task": tasks} if tasks else {})}


def _write_rows(target: Path, complete: Sequence[Run]) -> None:
    stream = io.StringIO(newline="")
    rows.write((row for run in complete for row in rows.client_rows(run)), stream)
    write(target, stream.getvalue(), "--csv ")


def _write_formats(paths: Sequence[Path], target: float | None, formats: Formats) -> int:
    from fedmpi.analysis.page import plain
    from fedmpi.analysis.page.build import Page
    from fedmpi.analysis.page.machine import read

    if formats.machine is not None and formats.html is None:
        raise BadInput("--machine is for the page: give --html too")
    page = Page(target, read(formats.machine) if formats.machine else None)
    complaints: list[str] = []
    page.add(each_run(paths, complaints))
    settings, warnings = page.settings(complaints)
    if formats.markdown:
        sys.stdout.write(visible_lines(plain.markdown(settings)))
    if formats.latex:
        sys.stdout.write(visible_lines(plain.latex(settings)))
    if formats.html is not None:
        text = page.html(_title(page), complaints)
        write(formats.html, text, "--html ")
        say(f"Page: {formats.html} ({len(text.encode()) / 1e6:.1f} MB)", sys.stderr)
    return left_out(warnings)


def _title(page: Page) -> str:
    """Return what the runs are of, as their records say: never a path, which belongs to one machine."""
    suites = list(dict.fromkeys(str(run.config["suite"]) for run in page.digests if run.config.get("suite")))
    if 0 < len(suites) <= _MOST_NAMED:
        return ", ".join(suites)
    return f"{len(page.digests)} run{'s' * (len(page.digests) != 1)}" + (
        f" of {len(suites)} suites" if suites else ""
    )


def repair(folder: Annotated[Path, typer.Argument(help="A run folder whose files are damaged.")]) -> int:
    """Rebuild run.h5 from events.jsonl, or events.jsonl from run.h5.

    What was there is kept.

    Examples
    --------
    fedmpi records repair results/runs/synthetic/quick/fedavg
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such run folder")
    with FolderLock(folder):
        done = make_whole(folder)
    say(f"{folder}: {done}")
    return 0


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
