"""A file of rows of the leaderboard, CSV: written whole, and every cell checked when it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fedmpi.analysis.leaderboard.rows import ENDED, FINAL, TUNING, Row
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.config.documents import load_csv, short
from fedmpi.errors import BadInput
from fedmpi.tables.csv import csv_of

COLUMNS = tuple(field.name for field in fields(Row))
_TYPES: Mapping[str, type[str] | type[int] | type[float]] = {
    each.name: {"str": str, "int": int, "float": float}[str(each.type)] for each in fields(Row)
}

_LARGEST = 1e39
"""Above what float32 holds, in which scores are; sums and squares of it are still numbers."""

_COUNTED = ("rounds_to_target",)
"""Whole numbers, unless there is none."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHOLE = re.compile(r"[0-9]{1,18}")


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: value in words


_ALLOWED: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("track", "data", "method", "case", "metric"), bool),
    "stage": _one_of(TUNING, FINAL),
    "status": _one_of(*ENDED),
    **dict.fromkeys(("config_digest", "results_digest"), lambda value: bool(_DIGEST.fullmatch(value))),
    **dict.fromkeys(("val", "test", "target"), lambda value: not abs(value) >= _LARGEST),
    **dict.fromkeys(
        ("bytes_per_client", "model_gflop", "cpu_seconds", "cpu_seconds_to_target"),
        lambda value: not (value < 0 or value >= _LARGEST),
    ),
    **dict.fromkeys(_COUNTED, lambda value: math.isnan(value) or (0 <= value < _LARGEST and value % 1 == 0)),
}
"""What a cell may be, beside its type; a number may be NaN, which is an empty cell."""


def as_csv(listed: Iterable[Row]) -> str:
    """Return rows as a file; floats in full, counts as whole numbers, NaN as an empty cell."""
    rows = (asdict(row) for row in listed)
    return csv_of(COLUMNS, ({name: _text(name, value) for name, value in row.items()} for row in rows))


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
    listed = [row for path in paths for row in _read_file(path)]
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


def _read_file(path: Path) -> list[Row]:
    def check(columns: tuple[str, ...]) -> None:
        if columns != COLUMNS:
            raise BadInput(f"{path}: no rows of a leaderboard: its columns differ")

    return [_read(row, f"{path}, line {line}") for line, row in load_csv(path, check)]


def _read(cells: Mapping[str, str], place: str) -> Row:
    if None in cells or None in cells.values():
        raise BadInput(f"{place}: not as many cells as columns; the file is damaged")
    values: dict[str, Any] = {name: _value(name, cell, place) for name, cell in cells.items()}
    row = Row(**values)
    if row.stage == FINAL and row.seed not in SEEDS:
        raise BadInput(f"{place}: seed {row.seed} is none of the winners' ({SEEDS[0]} to {SEEDS[-1]})")
    return row


def _value(name: str, cell: str, place: str) -> str | int | float:
    kind = _TYPES[name]
    try:
        value = math.nan if kind is float and not cell else kind(cell)
    except ValueError:
        value = None
    whole = kind is not int or _WHOLE.fullmatch(cell)
    if value is None or not whole or not _ALLOWED.get(name, lambda value: True)(value):
        raise BadInput(f"{place}: {name} = {short(cell)}; the file is damaged")
    return value
