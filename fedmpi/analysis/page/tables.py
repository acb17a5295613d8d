"""Tables of the page: sortable by the script, with captions and headings for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_TALL = 40
"""Rows beyond which a table scrolls by itself."""
_LONG = 16
"""Letters beyond which a heading is kept from folding into a line per word."""


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
    """Return a sortable table whose first column names the rows; below it, folded, what its columns mean."""
    given = [each if isinstance(each, Heading) else Heading(each) for each in headings]
    columns = zip(*rows, strict=True) if rows else ((),) * len(given)
    head = "".join(
        _heading(each, any(map(_numeric, column))) for each, column in zip(given, columns, strict=True)
    )
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    tall = " tall" if len(rows) > _TALL else ""
    return Markup(
        f'<div class="scroll{tall}" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table id="{identifier}" class="sortable"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{_meanings(given)}"
    )


def _heading(each: Heading, numeric: bool) -> str:
    tip = f' title="{escape(each.meaning)}"' if each.meaning else ""
    kinds = " ".join(kind for kind, holds in (("number", numeric), ("long", len(each.name) > _LONG)) if holds)
    attribute = f' class="{kinds}"' if kinds else ""
    return f'<th scope="col"{attribute}><button type="button"{tip}>{escape(each.name)}</button></th>'


def _meanings(headings: Sequence[Heading]) -> str:
    """Return what the columns mean for those who have no pointer to rest on a heading."""
    terms = "".join(
        f"<dt>{escape(each.name)}</dt><dd>{escape(each.meaning)}</dd>" for each in headings if each.meaning
    )
    if not terms:
        return ""
    return f'<details><summary>What the columns mean</summary><dl class="meanings">{terms}</dl></details>'


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    name = f'<th scope="row" data-value="{escape(first.value)}">{escape(first.text)}</th>'
    return name + "".join(_cell(each) for each in others)


def _numeric(each: Cell) -> bool:
    return isinstance(each.value, float | int) or each.text == "–"


def _cell(each: Cell) -> str:
    kinds = " ".join(kind for kind in ("number" if _numeric(each) else "", each.kind) if kind)
    attribute = f' class="{kinds}"' if kinds else ""
    value = f' data-value="{each.value:.10g}"' if isinstance(each.value, float | int) else ""
    star = '<span class="star" title="best"> ★</span>' if each.kind == "best" else ""
    return f"<td{attribute}{value}>{escape(each.text)}{star}</td>"
