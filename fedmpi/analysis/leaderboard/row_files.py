"""The leaderboard's files, CSV, of rows and of constants: written whole, and every cell checked when read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from fedmpi.analysis.leaderboard.rows import ENDED, FINAL, TUNING, Constant, Row
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.config.documents import load_csv, short
from fedmpi.errors import BadInput
from fedmpi.tables.csv import csv_of

Line = TypeVar("Line", Row, Constant)

_TYPES: Mapping[str, type[str] | type[int] | type[float]] = {"str": str, "int": int, "float": float}

_LARGEST = 1e39
"""Above what float32 holds, in which scores are; sums and squares of it are still numbers."""

_COUNTED = ("rounds_to_target",)
"""Whole numbers, unless there is none."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHOLE = re.compile(r"[0-9]{1,18}")

_ALLOWED: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("track", "data", "method", "case", "metric"), bool),
    "stage": lambda value: value in (TUNING, FINAL),
    "status": lambda value: value in ENDED,
    "constant": math.isfinite,
    **dict.fromkeys(("config_digest", "results_digest"), lambda value: bool(_DIGEST.fullmatch(value))),
    **dict.fromkeys(("val", "test", "target"), lambda value: not abs(value) >= _LARGEST),
    **dict.fromkeys(
        ("bytes_per_client", "model_gflop", "cpu_seconds", "cpu_seconds_to_target"),
        lambda value: not (value < 0 or value >= _LARGEST),
    ),
    **dict.fromkeys(_COUNTED, lambda value: math.isnan(value) or (0 <= value < _LARGEST and value % 1 == 0)),
}
"""What a cell may be, beside its type; a number may be NaN, which is an empty cell."""


def as_csv(kind: type[Line], listed: Iterable[Line]) -> str:
    """Return rows or constants as a file; floats in full, counts as whole numbers, NaN as an empty cell."""
    rows = (asdict(each) for each in listed)
    names = [each.name for each in fields(kind)]
    return csv_of(names, ({name: _text(name, value) for name, value in row.items()} for row in rows))


def _text(name: str, value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return ""
    return int(value) if name in _COUNTED and isinstance(value, float) else value


def read(*paths: Path) -> list[Row]:
    """Return the rows of files that `as_csv` made.

    Raises
    ------
    BadInput
        One cannot be read, has other columns, a cell that cannot be, or a row that is there twice.
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


def _read(kind: type[Line], path: Path, what: str) -> list[Line]:
    types = {each.name: _TYPES[str(each.type)] for each in fields(kind)}

    def check(columns: tuple[str, ...]) -> None:
        if columns != tuple(types):
            raise BadInput(f"{path}: no {what} of a leaderboard: its columns differ")

    found: list[Line] = []
    for line, cells in load_csv(path, check):
        place = f"{path}, line {line}"
        if None in cells or None in cells.values():
            raise BadInput(f"{place}: not as many cells as columns; the file is damaged")
        values = {name: _value(name, types[name], cell, place) for name, cell in cells.items()}
        if values.get("stage", FINAL) == FINAL and values["seed"] not in SEEDS:
            seeds = f"{SEEDS[0]} to {SEEDS[-1]}"
            raise BadInput(
                f"{place}: seed {values['seed']} is none of the winners' ({seeds}); the file is damaged"
            )
        found.append(kind(**values))
    return found


def _value(name: str, kind: type[str] | type[int] | type[float], cell: str, place: str) -> Any:
    try:
        value = math.nan if kind is float and not cell else kind(cell)
    except ValueError:
        value = None
    whole = kind is not int or _WHOLE.fullmatch(cell)
    if value is None or not whole or not _ALLOWED.get(name, lambda value: True)(value):
        raise BadInput(f"{place}: {name} = {short(cell)}; the file is damaged")
    return value
