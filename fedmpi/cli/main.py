"""``fedmpi``: its commands, and where each is found."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import fedmpi
from fedmpi.cli import output
from fedmpi.cli.ending import exit_code, refuse_unreadable
from fedmpi.cli.options import commands
from fedmpi.comm import interrupt

_PANELS = {
    "Run": ("run", "sweep", "new", "suites", "options"),
    "Look": ("report", "compare", "watch", "plot", "scaling", "export", "analyse"),
    "Data and records": ("data", "records"),
    "Cluster": ("jobs",),
    "Develop and reproduce": ("info", "bench", "paper", "leaderboard"),
}
"""Commands by the panel of the help that they stand in, in its order."""

app = commands(
    {
        "run": "run.run",
        "sweep": "sweep.sweep",
        "new": "settings.new",
        "suites": "suites.suites",
        "options": "settings.options",
        "report": "report.report",
        "compare": "compare.compare",
        "watch": "watch.watch",
        "plot": "plot.plot",
        "scaling": "scaling.scaling",
        "export": "export.export",
        "info": "info.info",
    },
    _PANELS,
    name="fedmpi",
    help="MPI-parallel benchmark suite for federated learning on graphs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = commands(
    {"list": "data.show", "fetch": "data.fetch", "verify": "data.verify"},
    help="Real datasets: list, fetch, verify.",
)
analyse_app = commands(
    {
        **{name: f"analyse.{name}" for name in ("properties", "statistics", "heterogeneity", "leakage")},
        "clusters": "analyse_clusters.clusters",
    },
    help="Statistics of graphs and datasets; leakage between splits.",
)
bench_app = commands(
    {
        **{name: f"bench.{name}" for name in ("train", "cores", "comm", "record", "data", "peers", "sums")},
        **{name: f"bench_launched.{name}" for name in ("ranks", "start")},
        "secure": "bench_secure.secure",
        "gpu": "bench_gpu.gpu",
    },
    help="Micro-benchmarks of the parts of a round, and the same rounds in a peer.",
)
records_app = commands(
    {"pack": "records.pack", "verify": "records.verify", "repair": "report.repair"},
    help="Finished runs: pack into a bundle, verify one, repair damaged files.",
)
paper_app = commands(
    {
        "select": "select.select",
        "system": "system.system",
        "reproduction": "reproduction.reproduction",
    },
    help="Tables of the papers: winners of a sweep, FedGraphNN's costs, what was confirmed.",
)
leaderboard_app = commands(
    {
        "run": "leaderboard.run",
        "check": "leaderboard.check",
        "constants": "leaderboard.constants",
        "page": "leaderboard_page.page",
    },
    help="Methods under one rule: tune and run them, check their rows, write the page.",
)
jobs_app = commands(
    {name: f"jobs.{name}" for name in ("plan", "render", "submit", "status", "resume", "cancel", "systems")},
    help="A suite on a Slurm cluster: plan, render, submit, status, resume, cancel.",
)
app.add_typer(data_app, name="data")
app.add_typer(analyse_app, name="analyse")
app.add_typer(bench_app, name="bench")
app.add_typer(jobs_app, name="jobs")
app.add_typer(records_app, name="records")
app.add_typer(paper_app, name="paper")
app.add_typer(leaderboard_app, name="leaderboard")


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
