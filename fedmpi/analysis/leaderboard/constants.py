"""What a constant prediction scores on a track's federations: for accuracy each client's majority class."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.config.documents import load_csv, short
from fedmpi.errors import BadInput
from fedmpi.tables.csv import csv_of


@dataclass(frozen=True)
class Constant:
    """A federation with a seed.

    Attributes
    ----------
    track, data, metric : str
    seed : int
        That draws partition and split.
    constant : float
        Mean over clients of the test score, in the metric's own scale.
    """

    track: str
    data: str
    seed: int
    metric: str
    constant: float


_COLUMNS = tuple(each.name for each in fields(Constant))


def file_beside(rows: Path) -> Path:
    """Return the file of the constants of a track whose rows are in this file."""
    return rows.parent / "constants" / rows.name


def as_csv(listed: Iterable[Constant]) -> str:
    """Return constants as a file; floats in full."""
    return csv_of(_COLUMNS, map(asdict, listed))


def read(path: Path) -> list[Constant]:
    """Return the constants of a file that `as_csv` made; none where there is no file.

    Raises
    ------
    BadInput
        It cannot be read, has other columns, or a cell that cannot be.
    """

    def check(columns: tuple[str, ...]) -> None:
        if columns != _COLUMNS:
            raise BadInput(f"{path}: no constants of a leaderboard: its columns differ")

    if not path.exists():
        return []
    return [_read(cells, f"{path}, line {line}") for line, cells in load_csv(path, check)]


def _read(cells: Any, place: str) -> Constant:
    try:
        found = Constant(**{**cells, "seed": int(cells["seed"]), "constant": float(cells["constant"])})
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{place}: {short(str(list(cells.values())))}; the file is damaged") from None
    if found.seed not in SEEDS or not math.isfinite(found.constant):
        raise BadInput(f"{place}: seed {found.seed}, constant {found.constant}; the file is damaged")
    return found
