"""A table as CSV: values in full, not as people read them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from fedmpi.tables.table import Column, Entry, Table


def csv_text(table: Table[Any]) -> str:
    """Return the rows under their headings; None is an empty cell."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.headings)
    writer.writerows([_value(column.value(row)) for column in table.columns] for row in table.rows)
    return stream.getvalue()


def csv_of(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows that have values by name; a cell is empty where a row has none."""
    return csv_text(Table([_named(name) for name in names], list(rows)))


def _named(name: str) -> Column[Mapping[str, Any]]:
    return Column(name, lambda row: row.get(name))


def _value(found: object) -> object:
    return found.value if isinstance(found, Entry) else found
