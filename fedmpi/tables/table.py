"""A table: columns that say what they hold, and rows. How it looks is a writer's concern."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

Row = TypeVar("Row")

NONE = "-"
WIDER = "a wider terminal or `| less -S` shows them"


@dataclass(frozen=True)
class Entry:
    """What an entry shows, what it is sorted by, and its class on the page (such as ``best``)."""

    text: str
    value: float | str = ""
    kind: str = ""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table: its heading, each row's value, and what it means.

    Attributes
    ----------
    heading : str
    value : callable
        Of a row: an `Entry`, or a number or text that `entry` makes one of; None and NaN are a dash.
    meaning : str
    spare : int
        0: it always stays; else the higher, the sooner a narrow terminal does without it.
    pasted : bool
        Whether it is in tables to paste into a text, too.
    unit : str
        Of the values that it is sorted by, where entries say their own.
    format : str
        Of numbers, such as ``.2f``.
    wrapped : bool
        Whether its text may take several lines.
    numeric : bool
        Whether it stands on the right though its entries are text, such as intervals.
    """

    heading: str
    value: Callable[[Row], object]
    meaning: str = ""
    spare: int = 0
    pasted: bool = False
    unit: str = ""
    format: str = ""
    wrapped: bool = False
    numeric: bool = False

    def entry(self, row: Row) -> Entry:
        """Return what stands in a row."""
        found = self.value(row)
        if isinstance(found, Entry):
            return found
        if found is None or (isinstance(found, float) and math.isnan(found)):
            return Entry(NONE)
        if isinstance(found, float | int):
            return Entry(format(found, self.format), found)
        return words(found)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns over rows.

    Attributes
    ----------
    columns : sequence of Column
    rows : sequence
        What the columns take their values from.
    title : str
    notes : sequence of str
        Lines below it.
    ruled : collection of int
        Places of the rows above which a line is drawn.
    hint : str
        How to see the columns that a narrow terminal leaves out.
    """

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = ()
    ruled: Collection[int] = ()
    hint: str = WIDER

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [column.heading for column in self.columns]

    @cached_property
    def entries(self) -> list[list[Entry]]:
        """The entries, row by row."""
        return [[column.entry(row) for column in self.columns] for row in self.rows]

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers, which stand on the right."""
        return [
            column.numeric or any(isinstance(row[place].value, float | int) for row in self.entries)
            for place, column in enumerate(self.columns)
        ]


def listed(
    headings: Iterable[str], spare: Sequence[str] = (), wrapped: Collection[str] = ()
) -> list[Column[Sequence[Any]]]:
    """Return columns over rows that are sequences of values.

    Parameters
    ----------
    headings : iterable of str
    spare : sequence of str
        Those that a narrow terminal does without, the least important first.
    wrapped : collection of str
        Those whose text may take several lines.
    """
    places = enumerate(headings)
    return ranked([Column(name, itemgetter(at), wrapped=name in wrapped) for at, name in places], spare)


def fields(*names: str, form: str = "") -> list[Column[Any]]:
    """Return columns of the rows' attributes under their names, numbers in a format."""
    return [Column(name, attrgetter(name), format=form) for name in names]


def ranked(columns: Iterable[Column[Row]], spare: Sequence[str]) -> list[Column[Row]]:
    """Return columns of which a narrow terminal does without those named, the least important first."""
    order = {heading: len(spare) - place for place, heading in enumerate(spare)}
    return [replace(each, spare=order.get(each.heading, each.spare)) for each in columns]


def filled(columns: Iterable[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns in which some row has something; all where there is no row."""
    return [each for each in columns if not rows or any(each.entry(row).text != NONE for row in rows)]


def number(value: float | None, digits: int = 2, kind: str = "", sign: str = "") -> Entry:
    """Return a number's entry, with a plus if `sign` is one; for none or NaN a dash, which sorts last."""
    if value is None or math.isnan(value):
        return Entry(NONE, "", kind)
    return Entry(f"{value:{sign},.{digits}f}", value, kind)


def share(value: float | None, digits: int = 2) -> Entry:
    """Return a share as percent."""
    return number(None if value is None else 100 * value, digits)


def words(content: object, kind: str = "") -> Entry:
    """Return an entry of text."""
    return Entry(str(content), str(content), kind)
