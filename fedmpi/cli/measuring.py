"""What the benchmarks' commands share: options, a process that measures alone, and how a report is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedmpi.analysis.stored import commit
from fedmpi.benchmarks import cases
from fedmpi.benchmarks.samples import Report, Samples, Turns
from fedmpi.cli.options import Data, Set
from fedmpi.cli.terminal import print_json, say, show
from fedmpi.comm import launch
from fedmpi.config.documents import short
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput
from fedmpi.store.provenance import checkout_state, collect
from fedmpi.tables.table import Entry, Table, listed

if TYPE_CHECKING:
    from fedmpi.registry.check import Checked

Repetitions = Annotated[int, typer.Option(min=1, help="Measured repetitions; all are kept.")]

_UNITS = {"s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)), "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))}
"""Units for the reader by the figure's own unit, largest first."""


@dataclass(frozen=True)
class Times(Turns):
    """How often a benchmark measures; a command's default has its numbers."""

    repetitions: Repetitions
    warmup: Annotated[int, typer.Option(min=0, help="Repetitions before, not measured.")]


@dataclass(frozen=True)
class Pairs(Turns):
    """The same for what is measured in pairs with a peer."""

    repetitions: Annotated[int, typer.Option(min=2, help="Pairs of rounds, all kept.")]
    warmup: Annotated[int, typer.Option(min=0, help="Pairs of rounds before, not measured.")]


@dataclass(frozen=True)
class Measured(Data):
    """The one case that is measured.

    Attributes
    ----------
    suite
        A suite with one case left; default gcfl/proteins with FedAvg.
    """

    suite: Annotated[str | None, typer.Argument()] = None
    set_: Set = None

    def choose(self, *changes: str) -> Checked:
        """Return the case, with further changes."""
        return cases.choose(self.suite, [*(self.set_ or []), *changes])


def told(text: str) -> None:
    """Say how far a benchmark is."""
    say(text, sys.stderr)


def names_of(text: str, known: Collection[str], option: str) -> tuple[str, ...]:
    """Return an option's names, each once.

    Raises
    ------
    BadInput
        One is not known.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            valid = f"give names with commas between them (valid: {', '.join(known)})"
            raise BadInput(f'{option}: there is no "{short(name)}"{closest(name, known)}: {valid}')
    return names


def alone(command: str, threads: int = 1) -> dict[str, Any]:
    """Refuse several ranks, set the number of threads before torch is loaded; return the state of the source.

    Raises
    ------
    BadInput
        Under a launcher with several ranks, or there are fewer cores than threads.
    """
    if (launch.expected_size() or 1) > 1:
        raise BadInput(f"bench {command} measures one process: start it without mpiexec")
    if threads > launch.available_cores():
        raise BadInput(f"threads = {threads}, but this process may use {launch.available_cores()} cores")
    if sys.stderr.isatty():
        told(f"fedmpi bench {command}: measuring; this can take some minutes")
    checkout = checkout_state()
    launch.set_defaults(threads)
    return checkout


def measuring(command: str, threads: int = 1) -> Callable[[Report, bool], int]:
    """Return, after what `alone` does, a function that prints a report."""
    return partial(finish, alone(command, threads), {"threads": threads})


def finish(checkout: dict[str, Any], facts: dict[str, Any], report: Report, as_json: bool) -> int:
    """Print a report with its provenance, as JSON with all samples; return the exit code."""
    is_alone = (launch.expected_size() or 1) == 1
    others = {"cores_of_others": launch.cores_of_others()} if is_alone else {}
    provenance = collect({**facts, **others}, checkout)
    if as_json:
        return print_json({**report.record(), "provenance": provenance})
    show(_table(report))
    for line in (*report.statements, _origin(provenance)):
        say(line)
    return 0


def _table(report: Report) -> Table[Sequence[object]]:
    """Return a line per figure: what was measured, and the figure's median, minimum and maximum."""
    labels = list(dict.fromkeys(name for each in report.measurements for name in each.labels))
    rows: list[list[object]] = []
    for each in report.measurements:
        named = [each.labels.get(label, "") for label in labels]
        for figure, samples in each.figures.items():
            unit, scale = _readable(samples)
            values = (samples.median, samples.minimum, samples.maximum)
            shown = (Entry(f"{value / scale:.4g}", value) for value in values)
            rows.append([*map(str, named), figure, unit, *shown, len(samples.values)])
            named = [""] * len(labels)
    columns = listed([*labels, "figure", "unit", "median", "min", "max", "samples"])
    return Table(columns, rows, f"fedmpi bench {report.benchmark}")


def _readable(samples: Samples) -> tuple[str, float]:
    """Return a unit in which the largest sample has few digits, and its size in the figure's own unit."""
    units = _UNITS.get(samples.unit, ())
    return next((each for each in units if samples.maximum >= each[1]), (samples.unit, 1.0))


def _origin(provenance: dict[str, Any]) -> str:
    versions = [f"{name} {found['version']}" for name, found in provenance["packages"].items()]
    cores = f"{len(provenance['affinity'])} of {provenance['cores']} cores"
    others = provenance.get("cores_of_others", 0)
    beside = f" ({others:g} of them busy with other programs: no quiet machine)" if others else ""
    made_by = commit(provenance, "no checkout", 12)
    return f"{provenance['cpu_model']}, {cores}{beside}; {made_by}; {', '.join(versions)}"
