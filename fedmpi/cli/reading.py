"""The commands that read finished or running cases: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmpi.cli.options import Json, Plugin, Runs

Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="1pt|1%|0.01",
        help="Without a target: how much worse than the reference's accuracy, ROC-AUC or RMSE is still "
        "valid: points, a share of it, or a number; default 1pt, of RMSE 1%.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(report)
    app.command()(compare)
    app.command()(watch)
    app.command()(scaling)
    app.command()(export)
    app.command()(pack)
    app.command()(verify)


def report(
    runs: Runs,
    target: Annotated[
        float | None, typer.Option(help="Accuracy (0 to 1), ROC-AUC or RMSE for the to-target figures.")
    ] = None,
    as_json: Json = False,
    csv: Annotated[Path | None, typer.Option(help="Also write one row per complete run and client.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a self-contained page with all charts.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table: a line per dataset and algorithm.")
    ] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print the same for LaTeX (booktabs).")] = False,
    machine: Annotated[
        Path | None,
        typer.Option(help="With --html: what `fedmpi bench train --json` printed, for rooflines."),
    ] = None,
) -> int:
    """Print a table of finished or running cases, or write a page about them."""
    from fedmpi.cli import report as command

    return command.report(runs, target, as_json, csv, command.Formats(html, markdown, latex, machine))


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Runs, suites or folders; the first is the reference.")],
    identical: Annotated[
        bool, typer.Option("--identical", help="Results must be equal bit for bit; of two sides.")
    ] = False,
    target: Annotated[
        float | None,
        typer.Option(help="Validation accuracy (0 to 1), ROC-AUC or RMSE that makes a run valid."),
    ] = None,
    tolerance: Tolerance = None,
    fail_if_slower: Annotated[
        str | None, typer.Option(metavar="10%", help="Exit code 1 if slower than the reference by more.")
    ] = None,
    fail_if_less_accurate: Annotated[
        str | None,
        typer.Option(
            metavar="1pt|1%|0.01", help="Exit code 1 if accuracy, ROC-AUC or RMSE is worse by more."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare runs, suites or systems: ratios of all figures of merit, paired by case and seed."""
    from fedmpi.analysis.comparison.compare import Limits
    from fedmpi.cli import compare as command
    from fedmpi.cli import report as reports
    from fedmpi.errors import BadInput

    if identical:
        if len(runs) != 2:
            raise BadInput("compare --identical: name two runs or two suites' folders")
        return command.identical(*runs)
    reports.check_target(target)
    limits = Limits(
        target,
        command.allowance(tolerance, "--tolerance"),
        None if fail_if_slower is None else command.share(fail_if_slower, "--fail-if-slower"),
        command.allowance(fail_if_less_accurate, "--fail-if-less-accurate"),
    )
    return command.compare(runs, limits, as_json)


def watch(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of runs: the one written to last.")],
    interval: Annotated[float, typer.Option(help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show how far it is, and stop.")] = False,
) -> int:
    """Watch a running job: rounds, accuracies, clusters, rate and estimated end."""
    from fedmpi.cli import watch as command

    return command.watch(run, interval, once)


def scaling(
    runs: Runs,
    without_server: Annotated[
        bool, typer.Option("--without-server", help="Efficiency divides by the ranks that host clients.")
    ] = False,
    predict: Annotated[
        str | None, typer.Option(metavar="8,16", help="Numbers of ranks to predict rounds per second for.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="Also draw them: .svg, .pdf or .png.")] = None,
    as_json: Json = False,
) -> int:
    """Strong, weak and throughput scaling of runs, and what a fitted model predicts."""
    from fedmpi.cli import scaling as command

    return command.scaling(runs, not without_server, predict, image, as_json)


def export(
    runs: Runs,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard event files.")] = None,
    mllog: Annotated[Path | None, typer.Option(help="Folder for logs in MLPerf's :::MLLOG format.")] = None,
) -> int:
    """Write runs in the formats of TensorBoard and MLPerf."""
    from fedmpi.cli import export as command

    return command.export(runs, tensorboard, mllog)


def pack(
    runs: Runs,
    suite: Annotated[
        str | None, typer.Option(help="The suite that they are of: a file, where it is not bundled.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The bundle; default NAME.tar.gz here.")] = None,
    plugin: Plugin = None,
) -> int:
    """Make a bundle of a suite's complete runs, to hand to somebody else."""
    from fedmpi.cli import bundle as command

    return command.pack(runs, suite, out, plugin or [])


def verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle made by fedmpi pack.")], plugin: Plugin = None
) -> int:
    """Check a bundle: files, records, completeness, and that its tables follow from the records."""
    from fedmpi.cli import bundle as command

    return command.verify(bundle, plugin or [])
