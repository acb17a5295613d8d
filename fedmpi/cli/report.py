"""What the commands `report`, `compare` and `repair` do; each returns its exit code."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedmpi.analysis import rows
from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.pairing import compare_identical
from fedmpi.analysis.scores import task_rows
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.cli.tables import client_table, run_table, task_table
from fedmpi.cli.terminal import console, print_json, say
from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import Run
from fedmpi.store.rebuild import repair as make_whole
from fedmpi.visible import complain_of


def check_target(target: float | None) -> None:
    """Raise BadInput for a target that is none of any score; accuracies above 1 are found with the runs."""
    if target is not None and not 0 < target < math.inf:
        raise BadInput(f"--target {target}: give an accuracy between 0 and 1, for instance 0.7")


def report(
    paths: Sequence[Path], target: float | None = None, as_json: bool = False, csv: Path | None = None
) -> int:
    """Print the figures of runs; folders that are no run stand for the runs below them.

    With `csv`, complete runs are also written there, one row per run and client.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).
    """
    check_target(target)
    complaints: list[str] = []
    runs = list(each_run(paths, complaints))
    complain_of(complaints)
    summaries = [summarise(run, target) for run in runs]
    if as_json:
        print_json([_in_full(row, run) for row, run in zip(summaries, runs, strict=True)])
    elif summaries:
        screen = console(sys.stdout)
        screen.print(run_table(summaries, [metric for run in runs for metric in run.metrics]))
        if len(runs) == 1:
            screen.print(client_table(per_client(runs[0]), runs[0].metrics))
            tasks = task_rows(runs[0])
            if tasks:
                screen.print(task_table(tasks, runs[0].metrics))
        for run in runs:
            if run.reason:
                screen.print(f"{run.folder}: {run.reason}")
    if csv is not None:
        _write_rows(csv, [run for run in runs if run.status == "complete"])
    return 2 if complaints else 0


def _in_full(summary: dict[str, Any], run: Run) -> dict[str, Any]:
    tasks = task_rows(run)
    return {**summary, "per_client": per_client(run), **({"per_task": tasks} if tasks else {})}


def _write_rows(target: Path, complete: Sequence[Run]) -> None:
    try:
        stream = io.StringIO(newline="")
        rows.write((row for run in complete for row in rows.client_rows(run)), stream)
        disk.write_whole(target, stream.getvalue())
    except OSError as error:
        raise BadInput(f"--csv {target}: cannot write it ({error.strerror})") from error


def compare(first: Path, second: Path) -> int:
    """Say whether the results of two runs, or of two suites, are identical bit for bit.

    Returns
    -------
    int
        0 if they are, 1 if not.
    """
    verdict = compare_identical(first, second)
    if not verdict.differences:
        cases = f"{verdict.cases} cases, " if verdict.cases > 1 else ""
        say(f"identical: {cases}{verdict.datasets} result datasets, {verdict.rounds} rounds")
        return 0
    say(f"different: {first} and {second}")
    for line in verdict.differences:
        say(f"  {line}")
    return 1


def repair(folder: Path) -> int:
    """Make a run's `run.h5` again from its event log, or the log from `run.h5`; what was there is kept."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such run folder")
    with FolderLock(folder):
        done = make_whole(folder)
    say(f"{folder}: {done}")
    return 0
