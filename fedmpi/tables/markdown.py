"""A table as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fedmpi.tables.table import Entry, Table, listed
from fedmpi.visible import visible


def markdown(table: Table[Any]) -> str:
    """Return a table, the best of a column in bold; notes below it, after an empty line."""
    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    body = [_line(map(_cell, row)) for row in table.entries]
    notes = ["", *map(visible, table.notes)] if table.notes else []
    return "\n".join([_line(map(_safe, table.headings)), _line(rules), *body, *notes, ""])


def markdown_of(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of values under headings."""
    return markdown(Table(listed(headings), list(rows)))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(entry: Entry) -> str:
    return f"**{_safe(entry.text)}**" if "best" in entry.kind.split() else _safe(entry.text)


def _safe(text: str) -> str:
    """Return a text in one line, without what ends a cell."""
    return visible(text).replace("|", "\\|")
