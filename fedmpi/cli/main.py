"""``fedmpi``: the commands and their options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import fedmpi
from fedmpi.cli import analyses, bench, jobs, output, reading
from fedmpi.cli.ending import exit_code
from fedmpi.cli.options import Cache, Mirror, Offline, Plugin, Set
from fedmpi.cli.usage import refuse_unreadable
from fedmpi.comm import interrupt

app = typer.Typer(
    name="fedmpi",
    help="MPI-parallel benchmark suite for federated learning on graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Real datasets: list, fetch, verify.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(analyses.app, name="analyse")
app.add_typer(bench.app, name="bench")
app.add_typer(jobs.app, name="jobs")

Target = Annotated[str, typer.Argument(help="A suite (file or bundled name), or a run folder with --resume.")]
SuiteName = Annotated[str, typer.Argument(help="A suite: a file or a bundled name such as gcfl/proteins.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the cases; default results/runs/SUITE.")]
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")]
Names = Annotated[list[str], typer.Argument(help="Datasets, groups or suites.")]


@app.command()
def run(
    target: Target,
    case: Annotated[str | None, typer.Option(help="Only this case: its number (from 0) or name.")] = None,
    set_: Set = None,
    out: Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue unfinished cases.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
    plugin: Plugin = None,
) -> int:
    """Run a suite's cases in order, on as many ranks as mpiexec starts; complete ones are skipped."""
    from fedmpi.cli import run as command

    places = command.Places(out, data, mirror, offline)
    return command.run(target, case, set_ or [], places, resume=resume, only_list=list_, plugins=plugin or [])


@app.command()
def sweep(
    suite: SuiteName,
    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1,
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1,
    budget: Annotated[float | None, typer.Option(min=0, help="Minutes after which no case runs on.")] = None,
    set_: Set = None,
    out: Out = None,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
    plugin: Plugin = None,
) -> int:
    """Run a suite's missing cases on this machine side by side, in priority order; resumable."""
    from fedmpi.cli import run as command
    from fedmpi.cli import sweep as sweeping

    places = command.Places(out, data, mirror, offline)
    return sweeping.sweep(suite, set_ or [], places, workers, ranks, budget, plugin or [])


@app.command()
def select(
    runs: Annotated[Path, typer.Argument(help="Suite or folder of finished runs.")],
    by: Annotated[
        str, typer.Option(help="Settings by which runs are grouped, with commas.")
    ] = "dataset.name,model.name,algorithm.name",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Seeds of the suite of winners, with commas; default: three that the sweep has not."
        ),
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Suite of the winners to write.")] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run the winners with these seeds.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1,
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1,
    set_: Set = None,
    out: Out = None,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
    plugin: Plugin = None,
) -> int:
    """Name the best settings of a sweep by validation data, and run them again with other seeds."""
    from fedmpi.cli import select as command
    from fedmpi.cli.run import Places

    places = Places(out, data, mirror, offline)
    numbers = None if seeds is None else command.seed_list(seeds)
    return command.select(
        runs, by.split(","), numbers, write, rerun, places, workers, ranks, set_ or [], plugin or []
    )


@app.command()
def system(
    runs: Annotated[str, typer.Argument(help="Suite, or folder of finished runs.")] = "fedgraphnn/table6",
    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1,
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1,
    set_: Set = None,
    out: Out = None,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Print FedGraphNN's Table 6 for this machine: seconds, FLOPs, parameters, and what its sleeps cost."""
    from fedmpi.cli import system as command
    from fedmpi.cli.run import Places

    return command.system(runs, set_ or [], Places(out, data, mirror, offline), workers, ranks)


@app.command()
def figure(
    suite: SuiteName,
    workers: Annotated[int, typer.Option(min=1, help="Cases at a time.")] = 1,
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks per case.")] = 1,
    budget: Annotated[float | None, typer.Option(min=0, help="Minutes after which no case runs on.")] = None,
    reuse: Annotated[
        list[Path] | None, typer.Option(help="Folder with finished runs to take cases from; may be repeated.")
    ] = None,
    image: Annotated[
        Path | None, typer.Option(help="Picture: .svg, .pdf or .png; default figure.svg beside the cases.")
    ] = None,
    set_: Set = None,
    out: Out = None,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
    plugin: Plugin = None,
) -> int:
    """Run what is missing of a suite, then draw its figure; resumable."""
    from fedmpi.cli import figure as command
    from fedmpi.cli.run import Places

    places, effort = Places(out, data, mirror, offline), command.Effort(workers, ranks, budget)
    return command.figure(suite, set_ or [], places, effort, reuse or [], image, plugin or [])


@app.command()
def plot(
    kind: Annotated[str, typer.Argument(help="Kind of figure, such as losses; docs/figures.md lists them.")],
    runs: Runs,
    image: Annotated[
        Path | None, typer.Option(help="Picture: .svg, .pdf or .png; default KIND.svg here.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the kind; may be repeated.")
    ] = None,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Draw a figure from finished runs."""
    from fedmpi.cli import figure as command
    from fedmpi.datasets.source import DataSource

    source = DataSource.from_environment(data, mirror, offline)
    return command.plot(kind, runs, image, option or [], source)


reading.add_to(app)


@app.command()
def reproduction(
    rows: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of `fedmpi report --csv`, or folders of such; default results/reference."),
    ] = None,
    cells: Annotated[
        Path, typer.Option(help="The table to write: a row per published cell and metric.")
    ] = Path("results/reference/cells.csv"),
    document: Annotated[Path, typer.Option(help="The document to write.")] = Path("docs/reproduction.md"),
) -> int:
    """Write from stored rows what became of published figures: confirmed, refuted, undecided, open."""
    from fedmpi.cli.reproduction import reproduction as command

    return command(rows or [Path("results/reference")], cells, document)


@app.command()
def suites(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only those that name or description say this of, e.g. fclg.")
    ] = None,
) -> int:
    """List the bundled suites: cases, description."""
    from fedmpi.cli.suites import suites as command

    return command(words or [])


@app.command()
def repair(folder: Annotated[Path, typer.Argument(help="A run folder whose files are damaged.")]) -> int:
    """Rebuild run.h5 from events.jsonl, or events.jsonl from run.h5."""
    from fedmpi.cli.report import repair as command

    return command(folder)


@app.command()
def info(
    mpi: Annotated[bool, typer.Option("--mpi", help="Start MPI and test each collective.")] = False,
    device: Annotated[
        str, typer.Option(help="With --mpi: cuda tests collectives in the GPUs' memory too.")
    ] = "cpu",
) -> int:
    """Print what to paste into a bug report; with --mpi under mpiexec, a self-test of the launch."""
    from fedmpi.cli import info as command

    return command.mpi(device) if mpi else command.info()


@data_app.command("list")
def data_list(mirror: Mirror = None, data: Cache = None, plugin: Plugin = None) -> int:
    """List the known datasets and groups, and whether they are at hand."""
    from fedmpi.cli import data as command

    return command.show(data, mirror, plugin or [])


@data_app.command("fetch")
def data_fetch(names: Names, mirror: Mirror = None, data: Cache = None, plugin: Plugin = None) -> int:
    """Download (or take from the mirror), check and prepare datasets: on a cluster, on the login node."""
    from fedmpi.cli import data as command

    return command.fetch(names, data, mirror, plugin or [])


@data_app.command("verify")
def data_verify(names: Names, data: Cache = None, plugin: Plugin = None) -> int:
    """Compute the content digests of prepared datasets anew and compare them."""
    from fedmpi.cli import data as command

    return command.verify(names, data, plugin or [])


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
