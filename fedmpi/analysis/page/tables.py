"""Tables of the page: sortable by the script, with captions and headings for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_TALL = 40
"""Rows beyond which a table scrolls by itself."""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, what it is sorted by, and the class that marks it (such as ``best``)."""

    text: str
    value: float | str = ""
    kind: str = ""


def number(value: float | None, digits: int = 2, kind: str = "") -> Cell:
    """Return a number's cell; a dash for none or NaN, which sorts last."""
    if value is None or math.isnan(value):
        return Cell("–", "", kind)
    return Cell(f"{value:,.{digits}f}", value, kind)


def percent(value: float | None, digits: int = 2, kind: str = "") -> Cell:
    """Return a share as percent."""
    return number(None if value is None else 100 * value, digits, kind)


def with_interval(mean: float, half: float, digits: int = 2, kind: str = "") -> Cell:
    """Return a mean with half the width of its interval, where there is one."""
    shown = number(mean, digits, kind)
    return shown if math.isnan(half) else Cell(f"{shown.text} ± {half:,.{digits}f}", mean, kind)


def words(content: object, kind: str = "") -> Cell:
    """Return a cell of text."""
    return Cell(str(content), str(content), kind)


@dataclass(frozen=True)
class Heading:
    """A column: its name and what it means, shown as a tip."""

    name: str
    meaning: str = ""


def table(
    caption: str, headings: Sequence[Heading | str], rows: Sequence[Sequence[Cell]], identifier: str
) -> Markup:
    """Return a sortable table whose first column names the rows."""
    head = "".join(_heading(each if isinstance(each, Heading) else Heading(each)) for each in headings)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    tall = " tall" if len(rows) > _TALL else ""
    return Markup(
        f'<div class="scroll{tall}" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table id="{identifier}" class="sortable"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _heading(each: Heading) -> str:
    tip = f' title="{escape(each.meaning)}"' if each.meaning else ""
    return f'<th scope="col"><button type="button"{tip}>{escape(each.name)}</button></th>'


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    name = f'<th scope="row" data-value="{escape(first.value)}">{escape(first.text)}</th>'
    return name + "".join(_cell(each) for each in others)


def _cell(each: Cell) -> str:
    numeric = isinstance(each.value, float | int) or each.text == "–"
    kinds = " ".join(kind for kind in ("number" if numeric else "", each.kind) if kind)
    attribute = f' class="{kinds}"' if kinds else ""
    value = f' data-value="{each.value:.10g}"' if isinstance(each.value, float | int) else ""
    star = '<span class="star" title="best"> ★</span>' if each.kind == "best" else ""
    return f"<td{attribute}{value}>{escape(each.text)}{star}</td>"
