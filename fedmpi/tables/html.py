"""A table as HTML: sortable by the page's script, with what its columns mean folded below it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from fedmpi.tables.table import Table


def html(table: Table[Any], identifier: str, options: str) -> Markup:
    """Return a table with buttons for a file and a command.

    Parameters
    ----------
    table : Table
        Its first column names the rows.
    identifier : str
        Of its element.
    options : str
        Of the command of `fedmpi report` that shows the same.
    """
    return Markup(_template().render(table=table, identifier=identifier, options=options))


@cache
def _template() -> Template:
    return template(compact(files("fedmpi.tables").joinpath("table.html.j2").read_text(encoding="utf-8")))


def template(source: str) -> Template:
    """Return a template that escapes what it is given, and refuses what it is not given."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)


def compact(source: str) -> str:
    """Return a template's text in one line: a line that begins with a tag follows the one before directly."""
    return re.sub(r"\n(?=<|\{%|$)", "", source).replace("\n", " ")
