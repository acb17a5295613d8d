"""What the command `reproduction` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.analysis import rows
from fedmpi.cli.terminal import say, write
from fedmpi.errors import BadInput
from fedmpi.reproduction.cells import as_csv
from fedmpi.reproduction.document import cells, document
from fedmpi.reproduction.results import Results


def reproduction(paths: Sequence[Path], table: Path, page: Path) -> int:
    """Write the table of published cells and the document about them from stored rows.

    Parameters
    ----------
    paths : sequence of Path
        Files made by ``fedmpi report --csv``, or folders of such; what is named as `table` is left out there.
    table, page : Path
        What is written: CSV and Markdown.

    Returns
    -------
    int
        0

    Raises
    ------
    BadInput
        There are no rows, rows that do not fit together, or no place to write to.
    """
    listed = [row for path in _files(paths, table) for row in rows.read(path)]
    if not listed:
        raise BadInput(f"{', '.join(map(str, paths))}: no rows; make some with fedmpi report --csv")
    results = Results(listed)
    found = cells(results)
    for target, text in ((table, as_csv(found)), (page, document(results, found))):
        write(target, text)
        say(f"wrote {target}")
    return 0


def _files(paths: Sequence[Path], table: Path) -> list[Path]:
    """Return the files of rows, those of a folder in the order of their names, without the table."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(item for item in path.glob("*.csv") if item.name != table.name)
        found += inside if path.is_dir() else [path]
    if not found:
        raise BadInput(f"{', '.join(map(str, paths))}: no rows (.csv); make some with fedmpi report --csv")
    return found
