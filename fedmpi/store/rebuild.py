"""Makes `run.h5` again from `events.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path

from fedmpi.store import disk, events, runfile
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
