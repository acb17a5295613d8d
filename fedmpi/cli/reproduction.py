"""What the command `paper reproduction` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.rows import read
from fedmpi.cli.row_files import row_files
from fedmpi.cli.terminal import say, write
from fedmpi.errors import BadInput
from fedmpi.reproduction.cells import as_csv
from fedmpi.reproduction.document import cells as all_cells
from fedmpi.reproduction.document import pages
from fedmpi.reproduction.results import Results


def reproduction(
    rows: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of `fedmpi report --csv`, or folders of such; default results/reference."),
    ] = None,
    cells: Annotated[
        Path, typer.Option(help="The table to write: a row per published cell and metric.")
    ] = Path("results/reference/cells.csv"),
    document: Annotated[
        Path, typer.Option(help="The first page; the others go in a folder of its name.")
    ] = Path("docs/reproduction.md"),
) -> int:
    """Write from stored rows what became of published figures: confirmed, refuted, undecided, open.

    In folders of rows a file with the table's name is left out.

    Raises
    ------
    BadInput
        There are no rows, rows that do not fit together, or no place to write to.

    Examples
    --------
    fedmpi paper reproduction
    """
    paths = rows or [Path("results/reference")]
    listed = [row for path in row_files(paths, cells) for row in read(path)]
    if not listed:
        raise BadInput(f"{', '.join(map(str, paths))}: no rows; make some with fedmpi report --csv")
    results = Results(listed)
    found = all_cells(results)
    beside = {document.parent / path: text for path, text in pages(results, found, document.stem).items()}
    for target, text in {cells: as_csv(found), **beside}.items():
        write(target, text)
        say(f"wrote {target}")
    return 0
