"""``fedmpi plot``: pictures from a suite's cases, or from any finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedmpi import NUMERICS_VERSION
from fedmpi.analysis import figures
from fedmpi.analysis.discovery import each_run, run_paths
from fedmpi.analysis.stored import read_run
from fedmpi.cli.options import Budget, SweepOptions
from fedmpi.cli.terminal import left_out, say
from fedmpi.config import locations
from fedmpi.config.suite import Suite, read
from fedmpi.config.tables import closest, parse_override
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.reader import Run
from fedmpi.store.schema import config_digest
from fedmpi.visible import complain

if TYPE_CHECKING:
    from fedmpi.cli.plan import Planned

_MOST_NAMED = 3
"""Missing cases that a caption names; of the others it gives the number."""


def plot(
    what: str,
    options: SweepOptions,
    runs: Annotated[list[Path] | None, typer.Argument()] = None,
    budget: Budget = None,
    image: Path | None = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE")] = None,
) -> int:
    """Draw the figure of a suite, whose missing cases are run first; or a kind of figure from finished runs.

    Parameters
    ----------
    what
        A suite with a figure, or a kind of figure, such as losses (docs/figures.md).
    runs
        Finished runs to draw a kind from, or to take cases of a suite from.
    image
        Picture: .svg, .pdf or .png; default beside the cases or here.
    option
        Option of a kind; may be repeated.

    Returns
    -------
    int
        Of a suite what ``fedmpi sweep`` returns: 0 all complete, 1 a case failed, 3 one diverged, 75 cases
        are left. Of a kind 0, or 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi plot gcfl/figure4 --workers 2
    fedmpi plot losses results/runs/gcfl/proteins --image losses.pdf
    """
    if what not in figures.KINDS:
        if option:
            raise BadInput("--option is for a kind of figure: a suite's options stand in its table [figure]")
        return _plot_suite(_suite_file(what), options, runs or [], budget, image)
    if budget is not None or options != SweepOptions(options.data, options.mirror, options.offline):
        raise BadInput(
            f"{what} is drawn from finished runs: --set, --out, --workers and the like are for suites"
        )
    if not runs:
        raise BadInput(f"{what} is drawn from finished runs: fedmpi plot {what} RUNS")
    return _plot_kind(what, runs, options.source(), image, option or [])


def _plot_suite(
    path: Path, options: SweepOptions, reused: Sequence[Path], budget: float | None, image: Path | None
) -> int:
    """Run what is missing of a suite, then draw its figure; resumable."""
    from fedmpi.cli.plan import check_writable, plan_suite
    from fedmpi.cli.sweep import run_missing

    found = read(path, options.overrides)
    drawing = _figure_of(found)
    target = image or (options.out or locations.RUNS / found.name) / "figure.svg"
    figures.check_image(target)
    plan = _reused(plan_suite(found, options.out, resume=True), reused)
    check_writable(target.parent)
    code = run_missing(plan, path, options, budget=budget)
    runs = each_run([item.folder for item in plan], [])
    complete = {run.folder: run for run in runs if run.status == "complete"}
    missing = [item.folder.name for item in plan if item.folder not in complete]
    try:
        _draw(drawing, options.source(), target, list(complete.values()), missing)
    except BadInput as error:
        if not missing:
            raise
        complain(f"no picture from {len(complete)} of {len(plan)} runs yet: {error}")
    return code


def _suite_file(name: str) -> Path:
    """Return the file of a suite; refuse a name that is neither that nor a kind's."""
    if "/" not in name and not name.endswith(".toml") and not Path(name).is_file():
        nearest = closest(name, [*figures.KINDS, *locations.bundled()])
        raise BadInput(f"{name}: no kind of figure and no suite{nearest} (kinds: {', '.join(figures.KINDS)})")
    return locations.find(name)


def _draw(
    kind: figures.Kind, source: DataSource, image: Path, runs: Sequence[Run], missing: Sequence[str]
) -> None:
    """Draw runs; the caption says what is missing."""
    more = len(missing) - _MOST_NAMED
    named = ", ".join(missing[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    drawn = f"Drawn from {len(runs)} of {len(runs) + len(missing)} runs; not complete: {named}."
    notes = [drawn] if missing else []
    figures.picture(kind, runs, source, notes, image)
    for line in (*notes, f"Picture: {image}"):
        say(line)


def _figure_of(suite: Suite) -> figures.Kind:
    """Return the kind of a suite's figure with its options."""
    if not suite.figure:
        raise BadInput(f"{suite.path}: it has no table [figure]; fedmpi plot draws from its runs too")
    table = dict(suite.figure)
    kind = figures.load(table.pop("kind"), f"{suite.path}: figure.kind: ")
    return figures.check_options(kind, table, f"{suite.path}: figure.")


def _reused(plan: Sequence[Planned], folders: Sequence[Path]) -> list[Planned]:
    """Return a plan in which runs below `folders` stand for cases of their configuration."""
    wanted = {_identity(item.checked.case.config()): item.number for item in plan if not item.done}
    found: dict[int, Path] = {}
    for path in (path for folder in folders for path in run_paths(folder)):
        try:
            run = read_run(path)
        except BadInput as error:
            complain(f"not reused: {error}")
            continue
        number = wanted.get(_identity(run.config))
        if number is not None and run.status == "complete" and run.numerics_version == NUMERICS_VERSION:
            found.setdefault(number, run.folder)
    if folders:
        say(f"{len(found)} cases are reused from finished runs")
    return [
        replace(item, folder=found[item.number], done=True) if item.number in found else item for item in plan
    ]


def _identity(config: Mapping[str, Any]) -> str:
    """Return what two runs of the same computation share, whatever suite and case they belong to."""
    return config_digest({name: value for name, value in config.items() if name not in ("suite", "name")})


def _plot_kind(
    kind: str, runs: Sequence[Path], source: DataSource, image: Path | None, option: Sequence[str]
) -> int:
    """Draw a kind of figure from finished runs."""
    options = dict(_option(text) for text in option)
    drawing = figures.check_options(figures.load(kind), options, "--option ")
    target = image or Path(f"{kind}.svg")
    figures.check_image(target)
    complaints: list[str] = []
    complete = []
    for run in each_run(runs, complaints):
        if run.status == "complete":
            complete.append(run)
        else:
            complaints.append(f"{run.folder}: {run.status}, {run.rounds_completed} rounds, left out")
    code = left_out(complaints)
    if complete or not complaints:
        _draw(drawing, source, target, complete, [_short(line) for line in complaints])
    return code


def _short(complaint: str) -> str:
    """Return the name of the run that a line about it begins with."""
    path = Path(complaint.partition(": ")[0])
    return path.parent.name if path.name == runfile.NAME else path.name


def _option(text: str) -> tuple[str, Any]:
    """Return name and value of ``name=value``; the value is TOML where it is that, else text."""
    try:
        return parse_override(text)
    except BadInput as error:
        raise BadInput(
            f"--option {text}: write it as name=value, for example --option field=test_loss"
        ) from error
