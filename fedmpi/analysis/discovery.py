"""Finds the run folders that a user means, and reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fedmpi.analysis.stored import origin, read_run
from fedmpi.config import suite
from fedmpi.config.locations import RUNS
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.folders import is_run, runs_below
from fedmpi.store.reader import Run


def run_paths(path: Path) -> list[Path]:
    """Return the runs that `path` stands for, sorted by name.

    A record or a run folder stands for itself; any other folder for the run folders below it; a suite, by its
    file or its name, for its cases in ``results/runs``.

    Raises
    ------
    BadInput
        There is nothing at `path`, no run below it, or too much to search.
    """
    place = folder_of(path)
    if place.is_file() or is_run(place):
        return [place]
    found = sorted(runs_below(place))
    if not found:
        raise BadInput(f"{place}: no run ({runfile.NAME}) in it or below")
    return found


def folder_of(path: Path) -> Path:
    """Return where the runs are that `path` stands for: itself, or a suite's folder.

    Raises
    ------
    BadInput
        There is nothing there.
    """
    if path.suffix == ".toml" and path.is_file():
        path = Path(suite.read(path).name)
    elif path.exists():
        return path
    if not path.is_absolute() and (RUNS / path).is_dir():
        return RUNS / path
    raise BadInput(f"{path}: no such file or folder, and no suite's runs in {RUNS}")


def single_run(path: Path) -> Run:
    """Return the one run that `path` stands for.

    Raises
    ------
    BadInput
        It stands for none, or for several.
    """
    found = run_paths(path)
    if len(found) > 1:
        raise BadInput(f"{path} holds {len(found)} runs: name one, such as {found[0]}")
    return read_run(found[0])


def run_places(paths: Sequence[Path], complaints: list[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the runs that `paths` stand for, each once: where it really lies, and as it was reached.

    A line about each path that stands for none is added to `complaints`.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            found = run_paths(path)
        except BadInput as error:
            complaints.append(str(error))
            continue
        for item in found:
            real = Path(os.path.realpath(item))
            place = real.parent if real.name == runfile.NAME else real
            if place not in seen:
                seen.add(place)
                yield place, item


def read_or_complain(place: Path, complaints: list[str]) -> Run | None:
    """Read a run; None where it cannot be read, and a line about it is added to `complaints`."""
    try:
        return read_run(place)
    except BadInput as error:
        complaints.append(str(error))
        return None


def each_run(paths: Sequence[Path], complaints: list[str]) -> Iterator[Run]:
    """Yield the runs that `paths` stand for, each once and read when its turn comes.

    What cannot be read is left out, and a line about it is added to `complaints`.
    """
    for _, place in run_places(paths, complaints):
        run = read_or_complain(place, complaints)
        if run is not None:
            yield run


def without_copies(runs: Iterable[Run], complaints: list[str]) -> Iterator[Run]:
    """Yield runs but for copies of those before them, which are no further measurements.

    A line about each copy is added to `complaints`.
    """
    seen: dict[str, Path] = {}
    for run in runs:
        mark = origin(run)
        if mark in seen:
            complaints.append(f"{run.folder}: a copy of {seen[mark]}, left out")
            continue
        if mark:
            seen[mark] = run.folder
        yield run
