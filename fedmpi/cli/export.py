"""``fedmpi export``: runs in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.export import mllog as logs
from fedmpi.analysis.export import tensorboard as events
from fedmpi.cli.options import Runs
from fedmpi.cli.terminal import left_out, say
from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.reader import Run


def export(
    runs: Runs,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard event files.")] = None,
    mllog: Annotated[Path | None, typer.Option(help="Folder for logs in MLPerf's :::MLLOG format.")] = None,
) -> int:
    """Write runs in the formats of TensorBoard and MLPerf.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi export results/runs/synthetic/quick --tensorboard tb
    """
    if tensorboard is None and mllog is None:
        raise BadInput("export: say --tensorboard FOLDER, --mllog FOLDER, or both")
    complaints: list[str] = []
    count = 0
    for run in each_run(runs, complaints):
        if not run.rounds_completed:
            complaints.append(f"{run.folder}: no round is finished, left out")
            continue
        count += 1
        try:
            if tensorboard is not None:
                events.write(run, tensorboard)
            if mllog is not None:
                _write_log(run, mllog)
        except OSError as error:
            place = error.filename or tensorboard or mllog
            raise BadInput(f"{place}: cannot write it ({error.strerror})") from error
    say(f"{count} runs exported to {', '.join(str(place) for place in (tensorboard, mllog) if place)}")
    return left_out(complaints)


def _write_log(run: Run, folder: Path) -> None:
    text = "\n".join(logs.lines(run)) + "\n"
    disk.write_whole(folder / f"{run.folder.resolve().name}.txt", text)
