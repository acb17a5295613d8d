"""Makes `run.h5` again from `events.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk, events, exact, runfile
from fedmpi.store.runfile import RunFile

DAMAGED = "run.h5.damaged"


def rebuild(folder: Path) -> int:
    """Write `run.h5` anew from the event log; a file already there is kept as `run.h5.damaged`.

    Returns
    -------
    int
        Number of rounds recovered.

    Raises
    ------
    BadInput
        The event log is missing or damaged before its end.
    RunFailed
        The new file could not be written; the old one is untouched.
    """
    log = events.read(folder / events.NAME)
    target, fresh = folder / runfile.NAME, folder / "run.h5.rebuilt"
    fresh.unlink(missing_ok=True)
    start = log[0]
    assert isinstance(start, events.Start)
    try:
        file = RunFile.create(fresh, start)
        try:
            for event in log[1:]:
                file.apply(event)
            recovered = file.rounds_completed
        finally:
            file.close()
        if target.exists():
            os.replace(target, folder / DAMAGED)
        os.replace(fresh, target)
        disk.sync(folder)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise disk.failure(target, error) from error
    return recovered


def rounds_logged(log: list[events.Event]) -> int:
    """Return how many rounds the log holds (a round computed twice counts once)."""
    return max((event.round + 1 for event in log if isinstance(event, events.Round)), default=0)


def lives_logged(log: list[events.Event]) -> int:
    """Return how many lives the log holds."""
    return sum(isinstance(event, events.Life) for event in log)


def last_life(log: list[events.Event]) -> list[events.Round]:
    """Return the rounds that the newest life wrote."""
    rounds: list[events.Round] = []
    for event in log:
        if isinstance(event, events.Life):
            rounds = []
        elif isinstance(event, events.Round):
            rounds.append(event)
    return rounds


def open_if_whole(path: Path, log: list[events.Event]) -> RunFile | None:
    """Return the open file, brought up to the log; None where only a rebuild can do that.

    Raises
    ------
    BadInput
        The log has fewer rounds than the file.
    """
    try:
        file = RunFile.open(path)
    except (OSError, KeyError, ValueError):
        return None
    known, logged = file.rounds_completed, rounds_logged(log)
    if known > logged:
        file.close()
        raise BadInput(
            f"{path.parent}: {events.NAME} was cut, it holds {logged} rounds and {runfile.NAME} {known}; "
            "nothing was changed: restore it, or move the folder away and run again"
        )
    if file.lives != lives_logged(log) or _differs(file, log, known):
        file.close()
        return None
    written = file.written_rounds
    for event in last_life(log):  # a kill may have hit between the log and the file
        if event.round >= written - 1:
            file.apply(event)
    file.write_out()
    return file


def _differs(file: RunFile, log: list[events.Event], known: int) -> bool:
    """Return whether a recorded round's results are not those of the log: the file was damaged inside."""
    newest = {
        event.round: event for event in log if isinstance(event, events.Round) and event.round < known - 1
    }
    return any(
        exact.different(np.asarray(row), file.result_row(name, index)).any()
        for index, event in newest.items()
        for name, row in event.results.items()
    )
