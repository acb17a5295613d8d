"""``fedmpi export``: runs in the formats of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.export import mllog
from fedmpi.analysis.export import tensorboard as events
from fedmpi.cli.terminal import say
from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.reader import Run
from fedmpi.visible import complain_of


def export(paths: Sequence[Path], tensorboard: Path | None, mlperf: Path | None) -> int:
    """Write event files, one folder per run, and logs, one file per run.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).
    """
    if tensorboard is None and mlperf is None:
        raise BadInput("export: say --tensorboard FOLDER, --mllog FOLDER, or both")
    complaints: list[str] = []
    count = 0
    for run in each_run(paths, complaints):
        if not run.rounds_completed:
            complaints.append(f"{run.folder}: no round is finished, left out")
            continue
        count += 1
        try:
            if tensorboard is not None:
                events.write(run, tensorboard)
            if mlperf is not None:
                _write_log(run, mlperf)
        except OSError as error:
            place = error.filename or tensorboard or mlperf
            raise BadInput(f"{place}: cannot write it ({error.strerror})") from error
    say(f"{count} runs exported to {', '.join(str(place) for place in (tensorboard, mlperf) if place)}")
    complain_of(complaints)
    return 2 if complaints else 0


def _write_log(run: Run, folder: Path) -> None:
    text = "\n".join(mllog.lines(run)) + "\n"
    disk.write_whole(folder / f"{run.folder.resolve().name}.txt", text)
