"""Finds run folders, within bounds: links may lead in circles, and a wrong word may name a whole disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fedmpi.errors import BadInput
from fedmpi.store import events, runfile

MOST_FOLDERS = 200_000
MOST_LEVELS = 64
"""Below a folder that is searched."""

_MARKS = (runfile.NAME, events.NAME)


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a record or an event log: plain files, no pipes or devices."""
    return any((folder / mark).is_file() for mark in _MARKS)


def runs_below(place: Path) -> Iterator[Path]:
    """Yield the run folders at and below a folder; links are followed, each real folder is visited once.

    Raises
    ------
    BadInput
        There are more folders than `MOST_FOLDERS`, or deeper ones than `MOST_LEVELS`.
    """
    seen: set[str] = set()
    top = str(place)
    for folder, inner, files in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            inner.clear()
            continue
        seen.add(real)
        if len(seen) > MOST_FOLDERS:
            raise BadInput(f"{place}: more than {MOST_FOLDERS:,} folders below it; name that of the runs")
        if folder[len(top) :].count(os.sep) > MOST_LEVELS:
            raise BadInput(f"{place}: folders more than {MOST_LEVELS} levels below it; name that of the runs")
        if any(mark in files for mark in _MARKS) and is_run(Path(folder)):
            yield Path(folder)
