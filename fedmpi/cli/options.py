"""Options that several commands share, alone and in groups: a dataclass stands for an option per field."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from fedmpi.config.documents import short
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.datasets.source import DataSource
    from fedmpi.heterogeneity.distances import WalkOptions

Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
]
Mirror = Annotated[Path | None, typer.Option(help="Local stand-in for upstream archives (FEDMPI_MIRROR).")]
Cache = Annotated[Path | None, typer.Option("--data", help="Folder of prepared data (FEDMPI_DATA).")]
Offline = Annotated[bool | None, typer.Option("--offline", help="Never download (FEDMPI_OFFLINE=1).")]
Plugin = Annotated[
    list[Path] | None, typer.Option(help="File that defines algorithms, models, data, ...; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SuiteName = Annotated[str, typer.Argument(help="A suite: a file or a bundled name such as gcfl/proteins.")]
Runs = Annotated[
    list[Path], typer.Argument(help="Run folders, folders that hold some, or suites run in results/runs.")
]
Reference = Annotated[
    str | None, typer.Option(metavar="NAME", help="What is set against; default FedAvg, else the first.")
]
Cases = Annotated[
    Path | None,
    typer.Option("--cases", metavar="FILE", help="Only the cases that this file names, one a line."),
]
OneCase = Annotated[str | None, typer.Option(help="Only this case: its number (from 0) or name.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the cases; default results/runs/SUITE.")]
Image = Annotated[
    Path | None, typer.Option(help="Picture: .svg, .pdf or .png; default beside the cases or here.")
]
AnalysisSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of random graphs, walks and drawn pairs.")
]
Budget = Annotated[float | None, typer.Option(min=0, help="Minutes after which no case runs on.")]


@dataclass(frozen=True)
class Data:
    """Where datasets come from."""

    data: Cache = None
    mirror: Mirror = None
    offline: Offline = None

    def source(self) -> DataSource:
        """Return the data source that these options and the environment ask for."""
        from fedmpi.datasets.source import DataSource

        return DataSource.from_environment(self.data, self.mirror, self.offline)


@dataclass(frozen=True)
class SuiteOptions(Data):
    """Which cases of a suite are meant, and where results and data are."""

    set_: Set = None
    out: Out = None
    plugin: Plugin = None

    @property
    def overrides(self) -> list[str]:
        """Settings to change."""
        return self.set_ or []

    @property
    def plugins(self) -> list[Path]:
        """Files that define algorithms."""
        return self.plugin or []


@dataclass(frozen=True)
class SweepOptions(SuiteOptions):
    """How the cases of a suite that are missing are run."""

    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1


@dataclass(frozen=True)
class Anew(Data):
    """How cases are computed again."""

    plugin: Plugin = None
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the computed cases, to go on if interrupted; default: none stay."),
    ] = None
    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1

    def sweep_in(self, folder: Path) -> SweepOptions:
        """Return the options of a sweep into a folder."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return SweepOptions(**given | {"out": folder})


@dataclass(frozen=True)
class Share:
    """Which part of a suite a sweep takes, and how it starts the ranks: for the tasks of an array."""

    share: Annotated[
        str | None,
        typer.Option(
            metavar="T/N", help="Only the cases T, T+N, T+2N, ...: one of N sweeps that share a suite."
        ),
    ] = None
    cases: Cases = None
    launch: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="In place of mpiexec and fedmpi: 'srun --mpi=pmi2 fedmpi'."),
    ] = None


@dataclass(frozen=True)
class Deciding:
    """Whether a sweep goes on until the claims about its suite are decided, and how they are."""

    until_decided: Annotated[
        bool,
        typer.Option("--until-decided", help="Add seeds until each claim of claims.csv is decided."),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --until-decided: only show how many seeds to expect.")
    ] = False
    max_seeds: Annotated[
        int | None,
        typer.Option(min=3, max=300, help="With --until-decided: most seeds of a cell; default 30."),
    ] = None
    spending: Annotated[
        str | None,
        typer.Option(help="With --until-decided: pocock (default) or obrien-fleming; how alpha is spent."),
    ] = None
    rows: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --until-decided: rows of `fedmpi report --csv`, or a folder, that count as run."
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that are set, besides --until-decided itself."""
        names = [each.name for each in fields(self)[1:] if getattr(self, each.name)]
        return [f"--{name.replace('_', '-')}" for name in names]


@dataclass(frozen=True)
class Walks:
    """The anonymous walks by which structures are compared."""

    length: Annotated[int, typer.Option(help="Steps of the anonymous walks.")] = 4
    walks: Annotated[int | None, typer.Option(help="Walks per graph; default by the bound.")] = None
    seed: AnalysisSeed = 0

    def options(self) -> WalkOptions:
        """Return them checked."""
        from fedmpi.heterogeneity.distances import WalkOptions

        return WalkOptions(self.length, self.walks, self.seed)


def refuse_beside(context: typer.Context, why: str, allowed: Collection[str]) -> None:
    """Refuse the options of a command that mean nothing beside another one.

    Parameters
    ----------
    context : typer.Context
        Of the command.
    why : str
        The other option, and what it does.
    allowed : collection of str
        Parameters that may be given.

    Raises
    ------
    BadInput
    """
    others = [each for each in context.command.params if each.name not in allowed]
    sources = {each.opts[0]: context.get_parameter_source(str(each.name)) for each in others}
    given = [option for option, source in sources.items() if source and source.name == "COMMANDLINE"]
    if given:
        raise BadInput(f"{why}: leave {' and '.join(given)} out")


def whole_numbers(text: str, pattern: re.Pattern[str], option: str, advice: str) -> list[int]:
    """Return an option's "1,2,3" as numbers.

    Parameters
    ----------
    text : str
    pattern : re.Pattern
        What each part must be.
    option, advice : str
        For the error: the option's name, and what to give.

    Raises
    ------
    BadInput
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(pattern.fullmatch(part) for part in parts):
        raise BadInput(f"{option} {short(text)}: {advice}")
    return [int(part) for part in parts]


class _ByModule(TyperGroup):
    """Commands that are imported when they are asked for: the program starts fast, and needs no torch."""

    places: Mapping[str, str]
    panels: Mapping[str, tuple[str, ...]]
    _listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; its help is its function's docstring without the sections but the examples."""
        panel = next((panel for panel, names in self.panels.items() if cmd_name in names), None)
        if cmd_name not in self.places:
            found = super().get_command(ctx, cmd_name)
            if panel and found is not None:
                found.rich_help_panel = panel  # type: ignore[attr-defined]
            return found
        module, _, name = self.places[cmd_name].partition(".")
        if self._listing:
            return TyperCommand(cmd_name, help=_first_line(module, name), rich_help_panel=panel)
        function = getattr(importlib.import_module(f"fedmpi.cli.{module}"), name)
        text = str(inspect.getdoc(function))
        alone = typer.Typer(add_completion=False)
        epilog = "\n\n".join(["Examples:", *_examples(text)])
        alone.command(cmd_name, help=_SECTION.split(text)[0], epilog=epilog)(_by_field(function))
        return typer.main.get_command(alone)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of their panels."""
        order = [name for names in self.panels.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if order else 0)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the list of commands without importing them."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


_SECTION = re.compile(r"\n\n\w+\n-+\n")


def _examples(text: str) -> list[str]:
    """Return the lines of the section Examples of a docstring."""
    part = text.partition("\n\nExamples\n--------\n")[2]
    return [line.strip() for line in _SECTION.split(part)[0].splitlines() if line.strip()]


def _first_line(module: str, name: str) -> str:
    """Return the first line of a command's docstring, read from its file."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text())
    (found,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name)
    return (ast.get_docstring(found) or "").partition("\n\n")[0]


_METAVARS = {Path: "PATH", int: "N", float: "X", bool: " "}


def _with_metavar(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter whose help has a word for its value: arguments in capitals, flags nothing."""
    if parameter.annotation is typer.Context:
        return parameter
    kind, info = get_args(parameter.annotation)
    while get_args(kind):
        kind = get_args(kind)[0]
    if info.metavar is not None:
        return parameter
    found = copy(info)
    is_argument = isinstance(info, ArgumentInfo)
    found.metavar = parameter.name.upper() if is_argument else _METAVARS.get(kind, "TEXT")
    return parameter.replace(annotation=Annotated[parameter.annotation.__origin__, found])


def commands(
    places: Mapping[str, str], panels: Mapping[str, tuple[str, ...]] | None = None, **settings: Any
) -> typer.Typer:
    """Return commands that are called with groups of options; on the command line each field is an option.

    Parameters
    ----------
    places : mapping
        Module of this package and function, by the command's name.
    panels : mapping, optional
        Names of all commands by the panel of the help that they stand in.
    settings
        Of the `typer.Typer`.
    """
    group = type("_Group", (_ByModule,), {"places": places, "panels": panels or {}})
    app = typer.Typer(cls=group, no_args_is_help=True, **settings)
    for name in places:
        app.command(name)(lambda: None)
    return app


def _by_field(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the fields of its groups one by one."""
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: each.annotation for name, each in parameters.items() if is_dataclass(each.annotation)
    }
    listed: list[inspect.Parameter] = []
    for name, each in parameters.items():
        group = groups.get(name)
        listed += inspect.signature(group, eval_str=True).parameters.values() if group else [each]

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return function(**given)

    by_name = [_with_metavar(each).replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in listed]
    call.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return call
