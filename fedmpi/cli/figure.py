"""``fedmpi figure`` and ``fedmpi plot``: pictures from a suite's cases, or from any finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from fedmpi import NUMERICS_VERSION
from fedmpi.analysis import figures
from fedmpi.analysis.discovery import each_run, run_paths
from fedmpi.analysis.stored import read_run
from fedmpi.cli.options import Budget, Data, Image, Runs, SuiteName, SweepOptions
from fedmpi.cli.terminal import say
from fedmpi.config import locations
from fedmpi.config.suite import Suite, read
from fedmpi.config.tables import parse_override
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.reader import Run
from fedmpi.store.schema import config_digest
from fedmpi.visible import complain, complain_of

if TYPE_CHECKING:
    from fedmpi.cli.run import Planned

_MOST_NAMED = 3
"""Missing cases that a caption names; of the others it gives the number."""


def figure(
    suite: SuiteName,
    options: SweepOptions,
    budget: Budget = None,
    reuse: Annotated[
        list[Path] | None, typer.Option(help="Folder with finished runs to take cases from; may be repeated.")
    ] = None,
    image: Image = None,
) -> int:
    """Run what is missing of a suite, then draw its figure; resumable.

    Returns
    -------
    int
        What ``fedmpi sweep`` returns: 0 all complete, 1 a case failed, 3 one diverged, 75 cases are left.
    """
    from fedmpi.cli.run import check_writable, plan_suite
    from fedmpi.cli.sweep import run_missing
    from fedmpi.registry.kinds import load_plugins

    path = locations.find(suite)
    found = read(path, options.overrides)
    kind, drawing = _figure_of(found)
    target = image or (options.out or locations.RUNS / found.name) / "figure.svg"
    figures.check_image(target)
    load_plugins(options.plugins)
    plan = _reused(plan_suite(found, options.out, resume=True), reuse or [])
    check_writable(target.parent)
    code = run_missing(plan, path, options, budget)
    _draw_plan(plan, _Picture(kind, drawing, options.source(), target))
    return code


@dataclass(frozen=True)
class _Picture:
    """What is drawn, and where to."""

    kind: figures.Kind
    options: BaseModel
    source: DataSource
    image: Path

    def draw(self, runs: Sequence[Run], missing: Sequence[str]) -> None:
        """Draw runs; the caption says what is missing."""
        notes = []
        if missing:
            more = len(missing) - _MOST_NAMED
            named = ", ".join(missing[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            notes.append(f"Drawn from {len(runs)} of {len(runs) + len(missing)} runs; not complete: {named}.")
        figures.picture(self.kind, runs, self.options, self.source, notes, self.image)
        for note in notes:
            say(note)
        say(f"Picture: {self.image}")


def _figure_of(suite: Suite) -> tuple[figures.Kind, BaseModel]:
    """Return kind and options of a suite's figure."""
    if not suite.figure:
        raise BadInput(f"{suite.path}: it has no table [figure]; fedmpi plot draws from its runs too")
    table = dict(suite.figure)
    kind = figures.load(table.pop("kind"), f"{suite.path}: figure.kind: ")
    return kind, figures.check_options(kind, table, f"{suite.path}: figure.")


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


def _draw_plan(plan: Sequence[Planned], picture: _Picture) -> None:
    """Draw the complete cases of a plan; say so where those do not make a picture yet."""
    runs, missing = _load([item.folder for item in plan])
    if not missing:
        picture.draw(runs, missing)
        return
    try:
        picture.draw(runs, missing)
    except BadInput as error:
        complain(f"no picture from {len(runs)} of {len(plan)} runs yet: {error}")


def _load(folders: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Return the complete runs of folders, and the names of the other folders."""
    complete = {run.folder: run for run in each_run(folders, []) if run.status == "complete"}
    missing = [folder.name for folder in folders if folder not in complete]
    return list(complete.values()), missing


def plot(
    kind: Annotated[str, typer.Argument(help="Kind of figure, such as losses; docs/figures.md lists them.")],
    runs: Runs,
    data: Data,
    image: Image = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the kind; may be repeated.")
    ] = None,
) -> int:
    """Draw a figure from finished runs.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).
    """
    drawing = figures.load(kind)
    options = figures.check_options(drawing, dict(_option(text) for text in option or []), "--option ")
    target = image or Path(f"{kind}.svg")
    figures.check_image(target)
    complaints: list[str] = []
    found = list(each_run(runs, complaints))
    complaints += [
        f"{run.folder}: {run.status}, {run.rounds_completed} rounds, left out"
        for run in found
        if run.status != "complete"
    ]
    complain_of(complaints)
    complete = [run for run in found if run.status == "complete"]
    if complete or not complaints:
        _Picture(drawing, options, data.source(), target).draw(
            complete, [_short(line) for line in complaints]
        )
    return 2 if complaints else 0


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
