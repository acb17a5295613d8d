"""What the commands `report` and `records repair` do; each returns its exit code."""

from __future__ import annotations

import io
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedmpi.analysis import rows
from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.page.cells import Setting
from fedmpi.analysis.page.collect import digest
from fedmpi.analysis.page.leads import records
from fedmpi.analysis.page.settings import apart, legend, settings
from fedmpi.analysis.remarks import remarks, unsplit
from fedmpi.analysis.scores import TOGETHER, task_rows
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.cli.options import Json, Reference, Runs
from fedmpi.cli.report_tables import client_table, mean_tables, run_table, task_table
from fedmpi.cli.terminal import counted, left_out, print_json, say, show, write
from fedmpi.errors import BadInput
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import Run
from fedmpi.store.rebuild import repair as make_whole

if TYPE_CHECKING:
    from fedmpi.analysis.page.build import Page

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
    latex: Annotated[bool, typer.Option("--latex", help="Print a table for a paper (LaTeX, booktabs).")] = (
        False
    )
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Of --markdown and --latex: headings of the overview, with commas; all; or paper, the "
            "best in bold: a line per algorithm, a column per dataset. Default: all; of --latex paper.",
        ),
    ] = None
    machine: Annotated[
        Path | None,
        typer.Option(help="With --html: what `fedmpi bench train --json` printed, for rooflines."),
    ] = None

    def __bool__(self) -> bool:
        return any((self.html, self.markdown, self.latex, self.columns, self.machine))


NO_FORMATS = Formats()


@dataclass(frozen=True)
class Lines:
    """What a line of a table stands for, and what leads are over."""

    by: Annotated[
        Literal["algorithm", "case"] | None,
        typer.Option(
            help="A line per dataset and algorithm, means over seeds, or per case. Default: of several runs "
            "algorithm, of one and with --json case."
        ),
    ] = None
    reference: Reference = None
    across: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Compare algorithms that differ in this setting, too (optimizer.lr); may be repeated.",
        ),
    ] = None


BY_ALGORITHM = Lines()


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
    lines: Lines = BY_ALGORITHM,
) -> int:
    """Print means over seeds with 95 % intervals, or single cases, or write a page about them.

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
    code = _write_formats(runs, target, formats, lines) if formats else 0
    return max(code, _print(runs, target, as_json, csv, lines)) if as_json or csv or not formats else code


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
        stream = io.StringIO(newline="")
        rows.write((row for run in complete for row in rows.client_rows(run)), stream)
        write(csv, stream.getvalue(), "--csv ")
    return code


def _parts(runs: Sequence[Run], found: Sequence[Setting], target: float | None) -> Iterator[Any]:
    """Yield the averages and, of what is in none, a line per run."""
    yield from mean_tables(found)
    yield from (*legend(found), *apart(found), *_remarks(found))
    single = [run for run in runs if run.status != "complete"] if found else runs
    if single:
        metrics = [metric for run in single for metric in run.metrics]
        title = "Not complete, so in no mean" if found else ""
        yield run_table([summarise(run, target) for run in single], metrics, title)
    if len(runs) == 1 and not found:
        by_client = per_client(runs[0])
        yield client_table(by_client, runs[0].metrics) if by_client else TOGETHER
        if tasks := task_rows(runs[0]):
            yield task_table(tasks, runs[0].metrics)
    yield from (f"{run.folder}: {run.reason}" for run in runs if run.reason)


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
    from fedmpi.analysis.page.cost import read_machine
    from fedmpi.analysis.page.paper import ALL, PAPER, pasted
    from fedmpi.tables.latex import latex
    from fedmpi.tables.markdown import markdown

    if formats.machine is not None and formats.html is None:
        raise BadInput("--machine is for the page: give --html too")
    if formats.columns is not None and not (formats.markdown or formats.latex):
        raise BadInput("--columns is for --markdown and --latex: give one of them too")
    if lines.by == "case":
        raise BadInput("--by case: the page, --markdown and --latex have means; leave one of them out")
    machine = read_machine(formats.machine) if formats.machine else None
    page = Page(target, machine, lines.reference, _command(paths, target, lines), lines.across or ())
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
