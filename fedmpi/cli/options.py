"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedmpi.config.documents import short
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.datasets.source import DataSource
    from fedmpi.heterogeneity.distances import WalkOptions

Set = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Change a setting; may be repeated.")
]
Mirror = Annotated[Path | None, typer.Option(help="Local stand-in for upstream archives (FEDMPI_MIRROR).")]
Cache = Annotated[Path | None, typer.Option(help="Folder of prepared data (FEDMPI_DATA).")]


def _loaded(paths: list[Path] | None) -> list[Path] | None:
    """Import the plug-ins that are named, before the command begins."""
    if paths:
        from fedmpi.registry.kinds import load_plugins

        load_plugins(paths)
    return paths


_DEFINES = "File that defines algorithms, models, data, ...; may be repeated."
PluginFiles = Annotated[list[Path] | None, typer.Option(help=_DEFINES)]
Plugin = Annotated[list[Path] | None, typer.Option(callback=_loaded, help=_DEFINES)]
"""The files are loaded where they are named; a command with `PluginFiles` loads them itself."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SuiteName = Annotated[str, typer.Argument(help="A suite: a file or a bundled name such as gcfl/proteins.")]
Runs = Annotated[
    list[Path], typer.Argument(help="Run folders, folders that hold some, or suites run in results/runs.")
]
Reference = Annotated[
    str | None, typer.Option(metavar="NAME", help="What is set against; default FedAvg, else the first.")
]
Cases = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Only the cases that this file names, one a line.")
]
OneCase = Annotated[str | None, typer.Option(help="Only this case: its number (from 0) or name.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the cases; default results/runs/SUITE.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random graphs, walks and drawn pairs.")]
Budget = Annotated[float | None, typer.Option(min=0, help="Minutes after which no case runs on.")]
Workers = Annotated[int, typer.Option(min=1, help="Cases at a time.")]
Ranks = Annotated[int, typer.Option(min=1, help="MPI ranks per case.")]


@dataclass(frozen=True)
class Data:
    """Where datasets come from.

    Attributes
    ----------
    offline
        Never download (FEDMPI_OFFLINE=1).
    """

    data: Cache = None
    mirror: Mirror = None
    offline: bool | None = None

    def source(self) -> DataSource:
        """Return the data source that these options and the environment ask for."""
        from fedmpi.datasets.source import DataSource

        return DataSource.from_environment(self.data, self.mirror, self.offline)


@dataclass(frozen=True)
class SuiteOptions(Data):
    """Which cases of a suite are meant, and where results and data are."""

    set_: Set = None
    out: Out = None
    plugin: PluginFiles = None

    @property
    def overrides(self) -> list[str]:
        """Settings to change."""
        return self.set_ or []

    @property
    def plugins(self) -> list[Path]:
        """Files that define algorithms."""
        return self.plugin or []

    @property
    def words(self) -> list[str]:
        """The same as words of a command line."""
        places = {"out": self.out, "data": self.data, "mirror": self.mirror}
        words = [f"--set={each}" for each in self.overrides] + [f"--plugin={each}" for each in self.plugins]
        words += [f"--{option}={path}" for option, path in places.items() if path is not None]
        return [*words, *["--offline"] * bool(self.offline)]


@dataclass(frozen=True)
class SweepOptions(SuiteOptions):
    """How the cases of a suite that are missing are run."""

    plugin: Plugin = None
    workers: Workers = 1
    ranks: Ranks = 1


@dataclass(frozen=True)
class Anew(Data):
    """How cases are computed again.

    Attributes
    ----------
    out
        Folder of the computed cases, to go on if interrupted; default: none stay.
    """

    plugin: Plugin = None
    out: Path | None = None
    workers: Workers = 1
    ranks: Ranks = 1

    def sweep_in(self, folder: Path) -> SweepOptions:
        """Return the options of a sweep into a folder."""
        return SweepOptions(**asdict(self) | {"out": folder})


@dataclass(frozen=True)
class Share:
    """Which part of a suite a sweep takes, and how it starts the ranks: for the tasks of an array.

    Attributes
    ----------
    share
        Only the cases T, T+N, T+2N, ...: one of N sweeps that share a suite.
    launch
        In place of mpiexec and fedmpi: 'srun --mpi=pmi2 fedmpi'.
    """

    share: Annotated[str | None, typer.Option(metavar="T/N")] = None
    cases: Cases = None
    launch: Annotated[str | None, typer.Option(metavar="COMMAND")] = None


@dataclass(frozen=True)
class Deciding:
    """Whether a sweep goes on until the claims about its suite are decided, and how they are.

    Attributes
    ----------
    until_decided
        Add seeds until each claim of claims.csv is decided.
    dry_run
        With --until-decided: only show how many seeds to expect.
    max_seeds
        With --until-decided: most seeds of a cell; default 30.
    spending
        With --until-decided: pocock (default) or obrien-fleming; how alpha is spent.
    rows
        With --until-decided: rows of `fedmpi report --csv`, or a folder, that count as run.
    """

    until_decided: bool = False
    dry_run: bool = False
    max_seeds: Annotated[int | None, typer.Option(min=3, max=300)] = None
    spending: Literal["pocock", "obrien-fleming"] | None = None
    rows: list[Path] | None = None


@dataclass(frozen=True)
class Walks:
    """The anonymous walks by which structures are compared.

    Attributes
    ----------
    length
        Steps of the anonymous walks.
    walks
        Walks per graph; default by the bound.
    """

    length: int = 4
    walks: int | None = None
    seed: Seed = 0

    def options(self) -> WalkOptions:
        """Return them checked."""
        from fedmpi.heterogeneity.distances import WalkOptions

        return WalkOptions(self.length, self.walks, self.seed)


def whole_numbers(text: str, option: str, least: int, most: int) -> list[int]:
    """Return an option's "1,2,3" as numbers, each once.

    Raises
    ------
    BadInput
        It is something else, or a number is below the least or above the most.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,18}", part) and least <= int(part) <= most for part in parts):
        raise BadInput(f"{option} {short(text)}: give whole numbers from {least:,} to {most:,}, such as 8,16")
    return list(dict.fromkeys(map(int, parts)))
