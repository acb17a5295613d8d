"""``fedmpi report``: means over seeds, single runs, and the page about them."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedmpi.analysis import rows
from fedmpi.analysis.columns import client_columns, run_columns, task_columns
from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.page.cells import Line, Setting, by_metric, direction
from fedmpi.analysis.page.cells import lines as lines_of
from fedmpi.analysis.page.collect import digest
from fedmpi.analysis.page.overview import columns, records
from fedmpi.analysis.page.settings import apart, legend, remarks, settings, unsplit
from fedmpi.analysis.scores import TOGETHER, task_rows
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.cli.options import Json, Reference, Runs
from fedmpi.cli.terminal import counted, left_out, print_json, say, show, write
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.tables.table import Table

if TYPE_CHECKING:
    from fedmpi.analysis.page.build import Page

_MOST_NAMED = 3
"""Suites that a title names."""
_MOST_TASKS = 30
_HINT = "a wider terminal, `| less -S` or --html FILE shows them"
_EXPLAINED = ("best by validation", "as published", "constant", "without twins")
"""Headings that are explained below the table."""
_INTERVALS = "±: 95 % interval over seeds (Student's t)."
_ONE_SEED = "One seed each, so no interval."
_LEADS = "A lead is paired by seed, + is better; decided where p < 0.05 after Holm over the dataset's leads."


@dataclass(frozen=True)
class Formats:
    """Which texts are wanted.

    Attributes
    ----------
    html
        Write a self-contained page with all charts.
    markdown
        Print a Markdown table: a line per dataset and algorithm.
    latex
        Print a table for a paper (LaTeX, booktabs).
    columns
        Of --markdown and --latex: headings of the overview, with commas; all; or paper, the best in bold: a
        line per algorithm, a column per dataset. Default: all; of --latex paper.
    """

    html: Annotated[Path | None, typer.Option(metavar="OUT")] = None
    markdown: bool = False
    latex: bool = False
    columns: Annotated[str | None, typer.Option(metavar="NAMES")] = None


NO_FORMATS = Formats()


@dataclass(frozen=True)
class Lines:
    """What a line of a table stands for, and what leads are over.

    Attributes
    ----------
    by
        A line per dataset and algorithm, means over seeds, or per case. Default: of several runs algorithm,
        of one and with --json case.
    across
        Compare algorithms that differ in this setting, too (optimizer.lr); may be repeated.
    """

    by: Literal["algorithm", "case"] | None = None
    reference: Reference = None
    across: Annotated[list[str] | None, typer.Option(metavar="KEY")] = None


BY_ALGORITHM = Lines()


def check_target(target: float | None) -> None:
    """Raise BadInput for a target that is none of any metric; one beyond a metric is found with the runs."""
    if target is not None and not math.isfinite(target):
        raise BadInput(f"--target {target}: give a number, for instance 0.7")


def report(
    runs: Runs,
    target: float | None = None,
    as_json: Json = False,
    csv: Path | None = None,
    formats: Formats = NO_FORMATS,
    lines: Lines = BY_ALGORITHM,
) -> int:
    """Print means over seeds with 95 % intervals, or single cases, or write a page about them.

    Parameters
    ----------
    target
        Accuracy (0 to 1), ROC-AUC or RMSE for the to-target figures.
    csv
        Also write one row per complete run and client.

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
    code = 0
    if formats != NO_FORMATS:
        code = _write_formats(runs, target, formats, lines)
    if formats == NO_FORMATS or as_json or csv:
        code = max(code, _print(runs, target, as_json, csv, lines))
    return code


def _print(paths: Sequence[Path], target: float | None, as_json: bool, csv: Path | None, lines: Lines) -> int:
    complaints: list[str] = []
    runs = list(each_run(paths, complaints))
    by = lines.by or ("case" if as_json or len(runs) == 1 else "algorithm")
    if by == "case" and lines.reference is not None:
        raise BadInput("--reference: single cases have no lead; give --by algorithm")
    if by == "case" and lines.across:
        raise BadInput("--across: single cases are not compared; give --by algorithm")
    found: list[Setting] = []
    complete = [run for run in runs if run.status == "complete"]
    if by == "algorithm":
        digests = [digest(run, target) for run in complete]
        found = settings(digests, complaints, lines.reference, lines.across or ())
    code = left_out(complaints)
    if as_json:
        print_json(records(found) if by == "algorithm" else [_in_full(run, target) for run in runs])
    elif runs:
        show(*_parts(runs, found, target))
    if csv is not None:
        write(csv, rows.text(row for run in complete for row in rows.client_rows(run)), "--csv ")
    return code


def _parts(runs: Sequence[Run], found: Sequence[Setting], target: float | None) -> Iterator[Any]:
    """Yield the averages and, of what is in none, a line per run; of a single run its clients and tasks."""
    yield from map(_means, by_metric(found))
    yield from (*legend(found), *apart(found), *_remarks(found))
    if single := [run for run in runs if run.status != "complete"] if found else runs:
        metrics = [metric for run in single for metric in run.metrics]
        figures = [summarise(run, target) for run in single]
        title = "Not complete, so in no mean" if found else ""
        yield Table(run_columns(figures, metrics), figures, title, hint=_HINT)
    if len(runs) == 1 and not found:
        clients, tasks, metrics = per_client(runs[0]), task_rows(runs[0]), [*runs[0].metrics]
        yield Table(client_columns(clients, metrics), clients, hint=_HINT) if clients else TOGETHER
        if tasks:
            more = [f"... {len(tasks) - _MOST_TASKS} more tasks"] if len(tasks) > _MOST_TASKS else []
            yield Table(task_columns(tasks, metrics), tasks[:_MOST_TASKS], notes=more, hint=_HINT)
    yield from (f"{run.folder}: {run.reason}" for run in runs if run.reason)


def _means(settings: Sequence[Setting]) -> Table[Line]:
    """Return one line per dataset and algorithm whose runs are judged by one metric."""
    shown = [each if each.heading in _EXPLAINED else replace(each, meaning="") for each in columns(settings)]
    repeated = any(len(cell.runs) > 1 for _, cell in lines_of(settings))
    lead = [_LEADS] if repeated and any(len(each.cells) > 1 for each in settings) else []
    note = " ".join((_INTERVALS if repeated else _ONE_SEED, *lead, "--by case shows single runs."))
    metric = settings[0].metric
    return Table(shown, lines_of(settings), f"By {metric.title}, {direction(metric)}", [note], hint=_HINT)


def _remarks(found: Sequence[Setting]) -> list[str]:
    """Return what is particular to algorithms, setting by setting where there are several."""
    lines = []
    for each in found:
        runs = [run for cell in each.cells for run in cell.runs.values()]
        where = f"{each.heading}: " if len(found) > 1 else ""
        said = [*unsplit(each.cells), *remarks((run.config, run.provenance) for run in runs)]
        lines += [f"{where}{line}" for line in said]
    return lines


def _in_full(run: Run, target: float | None) -> dict[str, Any]:
    tasks = task_rows(run)
    return {**summarise(run, target), "per_client": per_client(run), **({"per_task": tasks} if tasks else {})}


def _write_formats(paths: Sequence[Path], target: float | None, formats: Formats, lines: Lines) -> int:
    from fedmpi.analysis.page.build import Page
    from fedmpi.analysis.page.paper import ALL, PAPER, pasted
    from fedmpi.tables.texts import latex, markdown

    if formats.columns is not None and not (formats.markdown or formats.latex):
        raise BadInput("--columns is for --markdown and --latex: give one of them too")
    if lines.by == "case":
        raise BadInput("--by case: the page, --markdown and --latex have means; leave one of them out")
    page = Page(target, lines.reference, _command(paths, target, lines), lines.across or ())
    complaints: list[str] = []
    page.add(each_run(paths, complaints))
    settings, warnings = page.settings(complaints)
    if formats.markdown:
        found = pasted(settings, formats.columns or ALL)
        sys.stdout.write("\n".join(map(markdown, found)))
    if formats.latex:
        found = pasted(settings, formats.columns or PAPER)
        sys.stdout.write("\n".join(map(latex, found)))
    if formats.html is not None:
        text = page.html(_title(page), complaints)
        write(formats.html, text, "--html ")
        say(f"Page: {formats.html} ({len(text.encode()) / 1e6:.1f} MB)", sys.stderr)
    return left_out(warnings)


def _command(paths: Sequence[Path], target: float | None, lines: Lines) -> str:
    """Return the command that shows the same on a terminal."""
    words = ["fedmpi", "report", *map(str, paths)]
    words += ["--target", f"{target:g}"] if target is not None else []
    words += ["--reference", lines.reference] if lines.reference is not None else []
    words += [word for name in lines.across or () for word in ("--across", name)]
    return shlex.join(words)


def _title(page: Page) -> str:
    """Return what the runs are of, as their records say: never a path, which belongs to one machine."""
    suites = list(dict.fromkeys(str(run.config["suite"]) for run in page.digests if run.config.get("suite")))
    if 0 < len(suites) <= _MOST_NAMED:
        return ", ".join(suites)
    return counted(len(page.digests), "run") + (f" of {len(suites)} suites" if suites else "")
