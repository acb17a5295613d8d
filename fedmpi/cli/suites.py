"""``fedmpi suites``: the bundled suites."""

from __future__ import annotations

from typing import Annotated

import typer

from fedmpi.cli.terminal import show
from fedmpi.config import locations
from fedmpi.config.suite import Suite, read
from fedmpi.errors import BadInput
from fedmpi.tables.table import Column, Table

_COLUMNS: tuple[Column[tuple[str, Suite]], ...] = (
    Column("suite", lambda row: row[0]),
    Column("cases", lambda row: len(row[1].cases)),
    Column("description", lambda row: row[1].description, wrapped=True),
)
_NOTE = "`fedmpi run SUITE --list` lists a suite's cases; bench/README.md says what each needs"


def suites(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only those that name or description say this of, e.g. fclg.")
    ] = None,
) -> int:
    """List the bundled suites: cases, description.

    Raises
    ------
    BadInput
        There is none.

    Examples
    --------
    fedmpi suites fclg
    """
    words = words or []
    every = [(name, read(locations.find(name))) for name in locations.bundled()]
    chosen = [
        (name, suite)
        for name, suite in every
        if all(word.lower() in f"{name} {suite.description}".lower() for word in words)
    ]
    if not chosen:
        raise BadInput(f"no bundled suite says {' and '.join(words)}; `fedmpi suites` lists all")
    return show(Table(_COLUMNS, chosen, notes=[_NOTE]))
