"""Finds the run folders that a user means."""

from __future__ import annotations

from pathlib import Path

from fedmpi.errors import BadInput
from fedmpi.store import events, runfile

_MARKS = (runfile.NAME, events.NAME)


def run_paths(path: Path) -> list[Path]:
    """Return the runs under `path`, sorted by name.

    A file or a run folder stands for itself; any other folder for the run folders below it.

    Raises
    ------
    BadInput
        There is nothing at `path`, or no run below it.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such file or folder")
    if path.is_file() or any((path / mark).exists() for mark in _MARKS):
        return [path]
    found = sorted({mark.parent for name in _MARKS for mark in path.rglob(name)})
    if not found:
        raise BadInput(f"{path}: no run ({runfile.NAME}) in it or below")
    return found
