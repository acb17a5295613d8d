"""``fedmpi``: its commands, and where each is found."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import fedmpi
from fedmpi.cli.commands import commands
from fedmpi.cli.ending import exit_code, guarded, refuse_unreadable
from fedmpi.comm import interrupt
from fedmpi.comm.forked import leave

_PANELS = {
    "Run": "run sweep replay settings.new settings.suites settings.options",
    "Look": "report compare watch plot scaling export analyse",
    "Data and records": "data records",
    "Cluster": "jobs",
    "Develop and reproduce": "info bench paper leaderboard",
}
"""Commands by the panel of the help that they stand in, in its order; see `_places`."""

_GROUPS = {
    "data": ("Real datasets: list, fetch, describe, verify.", "list_ fetch data_describe.describe verify"),
    "analyse": (
        "Statistics of graphs and datasets; leakage between splits.",
        "properties statistics heterogeneity leakage analyse_clusters.clusters",
    ),
    "bench": (
        "Micro-benchmarks of the parts of a round, and the same rounds in a peer.",
        "train comm record data peers sums ranks bench_secure.secure bench_gpu.gpu",
    ),
    "jobs": (
        "A suite on a Slurm cluster: plan, render, submit, status, resume, cancel.",
        "plan render submit status resume cancel systems",
    ),
    "records": ("Finished runs: pack into a bundle, verify one, repair damaged files.", "pack verify repair"),
    "paper": (
        "Tables of the papers: winners of a sweep, FedGraphNN's costs, what was confirmed.",
        "select system reproduction",
    ),
    "leaderboard": (
        "Methods under one rule: tune and run them, check their rows, write the page.",
        "leaderboard_screen.screen run check constants leaderboard_page.page",
    ),
}
"""Groups of commands: what the help says of them, and their commands."""


def _places(commands: str, group: str = "") -> dict[str, str]:
    """Return module and function of each command by its name.

    A command is a function in the module of its group, or of its own name; or else ``MODULE.FUNCTION``.
    """
    places = [each if "." in each else f"{group or each}.{each}" for each in commands.split()]
    return {place.partition(".")[2].rstrip("_"): place for place in places}


_panels = {title: _places(each) for title, each in _PANELS.items()}
app = commands(
    {name: place for places in _panels.values() for name, place in places.items() if name not in _GROUPS},
    _panels,
    name="fedmpi",
    help="MPI-parallel benchmark suite for federated learning on graphs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, (_help, _names) in _GROUPS.items():
    app.add_typer(commands(_places(_names, _group), help=_help), name=_group)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedmpi {fedmpi.__version__}")
        raise typer.Exit


def _exit(code: int | None, **_: object) -> None:
    raise typer.Exit(code or 0)


@app.callback(result_callback=_exit)
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run, sweep, report and compare federated graph-learning benchmarks."""


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    with guarded(), interrupt.raised():
        leave(exit_code(_run))


def _run() -> int | None:
    refuse_unreadable(sys.argv[1:], os.environ)
    return app(prog_name="fedmpi", standalone_mode=False)  # type: ignore[no-any-return]
