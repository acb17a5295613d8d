"""``fedmpi export``: runs in the formats of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.discovery import read_or_complain, run_places
from fedmpi.analysis.export import mllog as logs
from fedmpi.analysis.export import tensorboard as events
from fedmpi.cli.options import Runs
from fedmpi.cli.terminal import left_out, say
from fedmpi.errors import BadInput
from fedmpi.store import disk


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
    places = dict(run_places(runs, complaints))
    for name, place in zip(_names(places), places.values(), strict=True):
        run = read_or_complain(place, complaints)
        if run is None:
            continue
        if not run.rounds_completed:
            complaints.append(f"{run.folder}: no round is finished, left out")
            continue
        count += 1
        try:
            if tensorboard is not None:
                events.write(run, tensorboard / name)
            if mllog is not None:
                disk.write_whole(mllog / f"{name}.txt", "\n".join(logs.lines(run)) + "\n")
        except OSError as error:
            failed = error.filename or tensorboard or mllog
            raise BadInput(f"{failed}: cannot write it ({error.strerror})") from error
    say(f"{count} runs exported to {', '.join(str(each) for each in (tensorboard, mllog) if each)}")
    return left_out(complaints)


def _names(places: Iterable[Path]) -> list[str]:
    """Return the path of each run below the folder that holds all of them, so that no two are alike."""
    folders = [place.parent for place in places]
    top = os.path.commonpath(folders) if folders else ""
    return [os.path.relpath(place, top) for place in places]
