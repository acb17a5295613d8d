"""A table as CSV: values in full, not as people read them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedmpi.tables.table import Table


def csv_text(table: Table[Any]) -> str:
    """Return the rows under their headings; None is an empty cell."""
    return _written(table.headings, ([column.value(row) for column in table.columns] for row in table.rows))


def csv_of(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows that have values by name; a cell is empty where a row has none."""
    headings = list(names)
    return _written(headings, ([row.get(name) for name in headings] for row in rows))


def _written(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows([headings, *rows])
    return stream.getvalue()
