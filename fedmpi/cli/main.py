"""``fedmpi``: its commands, and where each is found."""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import Annotated

import typer

import fedmpi
from fedmpi.cli import output
from fedmpi.cli.commands import commands
from fedmpi.cli.ending import exit_code, refuse_unreadable
from fedmpi.comm import interrupt

_PANELS = {
    "Run": ("run", "sweep", "new", "suites", "options"),
    "Look": ("report", "compare", "watch", "plot", "scaling", "export", "analyse"),
    "Data and records": ("data", "records"),
    "Cluster": ("jobs",),
    "Develop and reproduce": ("info", "bench", "paper", "leaderboard"),
}
"""Commands by the panel of the help that they stand in, in its order."""

_GROUPS = {
    "data": ("Real datasets: list, fetch, verify.", ("list", "fetch", "verify")),
    "analyse": (
        "Statistics of graphs and datasets; leakage between splits.",
        ("properties", "statistics", "heterogeneity", "leakage", "clusters"),
    ),
    "bench": (
        "Micro-benchmarks of the parts of a round, and the same rounds in a peer.",
        ("train", "comm", "record", "data", "peers", "sums", "ranks", "secure", "gpu"),
    ),
    "jobs": (
        "A suite on a Slurm cluster: plan, render, submit, status, resume, cancel.",
        ("plan", "render", "submit", "status", "resume", "cancel", "systems"),
    ),
    "records": (
        "Finished runs: pack into a bundle, verify one, repair damaged files.",
        ("pack", "verify", "repair"),
    ),
    "paper": (
        "Tables of the papers: winners of a sweep, FedGraphNN's costs, what was confirmed.",
        ("select", "system", "reproduction"),
    ),
    "leaderboard": (
        "Methods under one rule: tune and run them, check their rows, write the page.",
        ("run", "check", "constants", "page"),
    ),
}
"""Groups of commands: what the help says of them, and their names."""

_ELSEWHERE = {
    "new": "settings.new",
    "suites": "settings.suites",
    "options": "settings.options",
    "export": "records.export",
    "data list": "data.show",
    "analyse clusters": "analyse_clusters.clusters",
    "bench secure": "bench_secure.secure",
    "bench gpu": "bench_gpu.gpu",
    "leaderboard page": "leaderboard_page.page",
}
"""Module and function of commands that are not found in the module of their group, or of their own name."""

app = commands(
    {
        name: _ELSEWHERE.get(name, f"{name}.{name}")
        for name in chain(*_PANELS.values())
        if name not in _GROUPS
    },
    _PANELS,
    name="fedmpi",
    help="MPI-parallel benchmark suite for federated learning on graphs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, (_help, _names) in _GROUPS.items():
    _places = {name: _ELSEWHERE.get(f"{_group} {name}", f"{_group}.{name}") for name in _names}
    app.add_typer(commands(_places, help=_help), name=_group)


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
    with output.guarded(), interrupt.raised():
        sys.exit(exit_code(_run))


def _run() -> int | None:
    refuse_unreadable(sys.argv[1:], os.environ)
    return app(prog_name="fedmpi", standalone_mode=False)  # type: ignore[no-any-return]
