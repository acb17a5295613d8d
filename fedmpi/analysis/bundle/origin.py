"""Which suite runs are of: its file, named by the user, by the runs themselves, or bundled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fedmpi.config import locations
from fedmpi.config import suite as suites
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run


def suite_file(paths: Sequence[Path], runs: Sequence[Run], name: str) -> Path | None:
    """Return the file of the suite `name`; None where it is not here.

    In this order: a file among `paths`; the file that the runs were started with, seen from here or from
    a folder above them; the bundled suite of that name.
    """
    for path in paths:
        if path.suffix == ".toml" and path.is_file():
            return path
    for run in runs[:1]:
        for path in _started_with(run):
            if _is_suite(path, name):
                return path
    try:
        return locations.find(name)
    except BadInput:
        return None


def _started_with(run: Run) -> Iterator[Path]:
    """Yield where the suite may lie that a run's recorded commands name."""
    for attempt in run.attempts:
        words = attempt.provenance.get("command")
        for word in words if isinstance(words, list) else ():
            if isinstance(word, str) and word.endswith(".toml"):
                for folder in (Path(), *run.folder.absolute().parents):
                    yield folder / word


def _is_suite(path: Path, name: str) -> bool:
    try:
        return path.is_file() and suites.read(path).name == name
    except (BadInput, OSError):
        return False
