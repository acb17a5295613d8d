"""``fedmpi suites``: the bundled suites."""

from __future__ import annotations

from typing import Annotated

import typer

from fedmpi.cli.plain_table import PlainTable
from fedmpi.cli.terminal import show
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput


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
    table = PlainTable("", ["suite", "cases", "description"], 1, wrapped=("description",))
    for name in locations.bundled():
        suite = read(locations.find(name))
        said = f"{name} {suite.description}".lower()
        if all(word.lower() in said for word in words):
            table.add_line(name, str(len(suite.cases)), suite.description)
    if not table.row_count:
        raise BadInput(f"no bundled suite says {' and '.join(words)}; `fedmpi suites` lists all")
    table.caption = "`fedmpi run SUITE --list` lists a suite's cases; bench/README.md says what each needs"
    return show(table)
