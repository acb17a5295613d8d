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
from fedmpi.cli.options import (
    Budget,
    Cache,
    Commands,
    Data,
    Image,
    Mirror,
    OneCase,
    Plugin,
    Runs,
    SuiteName,
    SuiteOptions,
    SweepOptions,
)  # fmt: skip
from fedmpi.cli.usage import refuse_unreadable
from fedmpi.comm import interrupt

app = Commands(
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
Names = Annotated[list[str], typer.Argument(help="Datasets, groups or suites.")]


@app.command()
def run(
    target: Target,
    options: SuiteOptions,
    case: OneCase = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue unfinished cases.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
) -> int:
    """Run a suite's cases in order, on as many ranks as mpiexec starts; complete ones are skipped."""
    from fedmpi.cli import run as command

    return command.run(target, case, options, resume=resume, only_list=list_)


@app.command()
def sweep(suite: SuiteName, options: SweepOptions, budget: Budget = None) -> int:
    """Run a suite's missing cases on this machine side by side, in priority order; resumable."""
    from fedmpi.cli import sweep as command

    return command.sweep(suite, options, budget)


@app.command()
def select(
    runs: Annotated[Path, typer.Argument(help="Suite or folder of finished runs.")],
    options: SweepOptions,
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
) -> int:
    """Name the best settings of a sweep by validation data, and run them again with other seeds."""
    from fedmpi.cli import select as command

    return command.select(runs, options, by, seeds, write, rerun)


@app.command()
def system(
    options: SweepOptions,
    runs: Annotated[str, typer.Argument(help="Suite, or folder of finished runs.")] = "fedgraphnn/table6",
) -> int:
    """Print FedGraphNN's Table 6 for this machine: seconds, FLOPs, parameters, and what its sleeps cost."""
    from fedmpi.cli import system as command

    return command.system(runs, options)


@app.command()
def figure(
    suite: SuiteName,
    options: SweepOptions,
    budget: Budget = None,
    reuse: Annotated[
        list[Path] | None, typer.Option(help="Folder with finished runs to take cases from; may be repeated.")
    ] = None,
    image: Image = None,
) -> int:
    """Run what is missing of a suite, then draw its figure; resumable."""
    from fedmpi.cli import figure as command

    return command.figure(suite, options, budget, reuse or [], image)


@app.command()
def plot(
    kind: Annotated[str, typer.Argument(help="Kind of figure, such as losses; docs/figures.md lists them.")],
    runs: Runs,
    data: Data,
    image: Image = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the kind; may be repeated.")
    ] = None,
) -> int:
    """Draw a figure from finished runs."""
    from fedmpi.cli import figure as command

    return command.plot(kind, runs, image, option or [], data.source())


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
