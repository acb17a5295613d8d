"""Files of rows that commands are given: single ones, or folders of such."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.errors import BadInput


def row_files(paths: Sequence[Path], table: Path) -> list[Path]:
    """Return files of rows, those of a folder in the order of their names, without the table of cells.

    Raises
    ------
    BadInput
        There are none.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(item for item in path.glob("*.csv") if item.name != table.name)
        found += inside if path.is_dir() else [path]
    if not found:
        raise BadInput(f"{', '.join(map(str, paths))}: no rows (.csv); make some with fedmpi report --csv")
    return found
