"""The leaderboard's files of rows, constants and trials: written whole, and every cell checked when read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from fedmpi.analysis.leaderboard.rows import FINAL, TUNING, Constant, Row
from fedmpi.analysis.leaderboard.screening import Trial
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.config.documents import load_csv, short
from fedmpi.errors import BadInput
from fedmpi.tables.csv import csv_of

Line = TypeVar("Line", Row, Constant, Trial)


def as_csv(kind: type[Line], listed: Iterable[Line]) -> str:
    """Return rows or constants as a file; floats in full, counts as whole numbers, NaN as an empty cell."""
    rows = (asdict(each) for each in listed)
    names = [each.name for each in fields(kind)]
    return csv_of(names, ({name: _text(name, value) for name, value in row.items()} for row in rows))


def _text(name: str, value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return ""
    return int(value) if name == "rounds_to_target" and isinstance(value, float) else value


def read(*paths: Path) -> list[Row]:
    """Return the rows of files that `as_csv` made.

    Raises
    ------
    BadInput
        One cannot be read, has other columns (those with a default may be missing), a cell that cannot be,
        or a row that is there twice.
    """
    listed = [row for path in paths for row in _read(Row, path, "rows")]
    there = set()
    for row in listed:
        run = (row.track, row.stage, *row.pair, row.seed, row.case if row.stage == TUNING else "")
        if run in there:
            files = ", ".join(map(str, paths))
            raise BadInput(f"{files}: two rows of {row.track}, {row.stage} {row.case}; leave one out")
        there.add(run)
    return listed


def refuse_other_tracks(path: Path, listed: Sequence[Row], track: str) -> None:
    """Raise BadInput if a file has rows of another track: these would be mixed."""
    if other := sorted({row.track for row in listed} - {track}):
        raise BadInput(f"{path}: rows of {', '.join(other)}, not of {track}; choose another --rows")


def constants_beside(rows: Path) -> Path:
    """Return the file of the constants of a track whose rows are in this file."""
    return rows.parent / "constants" / rows.name


def read_constants(path: Path) -> list[Constant]:
    """Return the constants of a file that `as_csv` made, none where there is no file; raises as `read`."""
    return _read(Constant, path, "constants") if path.exists() else []


def read_trials(path: Path) -> list[Trial]:
    """Return the trials of a file that `as_csv` made; raises as `read`."""
    return _read(Trial, path, "trials")


def _read(kind: type[Line], path: Path, what: str) -> list[Line]:
    checked = TypeAdapter(kind)

    def check(columns: tuple[str, ...]) -> None:
        wanted = [each for each in fields(kind) if each.name in columns or each.default is MISSING]
        if columns != tuple(each.name for each in wanted):
            raise BadInput(f"{path}: no {what} of a leaderboard: its columns differ")

    found: list[Line] = []
    for line, cells in load_csv(path, check):
        place = f"{path}, line {line}"
        try:
            row = checked.validate_python(cells)
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            raise BadInput(f"{place}: {name} = {short(cells[name])}; the file is damaged") from error
        if kind is not Trial and getattr(row, "stage", FINAL) == FINAL and row.seed not in SEEDS:
            seeds = f"{SEEDS[0]} to {SEEDS[-1]}"
            raise BadInput(f"{place}: seed {row.seed} is none of the winners' ({seeds}); the file is damaged")
        found.append(row)
    return found
