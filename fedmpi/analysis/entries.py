"""Entries and columns of tables, the same on the terminal, on the page and in texts to paste."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fedmpi.judging.estimates import Estimate
from fedmpi.metrics.metric import Metric

Row = TypeVar("Row")

NONE = "-"


@dataclass(frozen=True)
class Entry:
    """What an entry shows, what it is sorted by, and its class on the page (such as ``best``)."""

    text: str
    value: float | str = ""
    kind: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or stands in place of one."""
        return isinstance(self.value, float | int) or self.text == NONE


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table: its heading, each row's entry, and what it means.

    Attributes
    ----------
    spare : int
        0: it always stays; else the higher, the sooner a narrow terminal does without it.
    pasted : bool
        Whether it is in tables to paste into a text, too.
    unit : str
        Of the values that it is sorted by, where entries say their own.
    """

    heading: str
    entry: Callable[[Row], Entry]
    meaning: str = ""
    spare: int = 0
    pasted: bool = False
    unit: str = ""


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


def score(metric: Metric, value: float | Estimate | None, kind: str = "", sign: str = "") -> Entry:
    """Return a metric's value as people read it, with half the width of its interval where it has one.

    Parameters
    ----------
    metric : Metric
    value : float or Estimate or None
    kind : str
        Its class on the page.
    sign : str
        "+" for a difference.
    """
    found = value if isinstance(value, Estimate) else Estimate(math.nan if value is None else value)
    shown = number(metric.scale * found.mean, metric.digits, kind, sign)
    if math.isnan(found.half):
        return shown
    return Entry(f"{shown.text} ± {metric.scale * found.half:,.{metric.digits}f}", shown.value, kind)
