"""Tables of the page: sortable by the script, with captions and headings for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TypeVar

from markupsafe import Markup, escape

from fedmpi.analysis.entries import NONE, Column, Entry

Row = TypeVar("Row")

_TALL = 40
"""Rows beyond which a table scrolls by itself."""
_LONG = 16
"""Letters beyond which a heading is kept from folding into a line per word."""


def table(caption: str, columns: Sequence[Column[Row]], rows: Sequence[Row], identifier: str) -> Markup:
    """Return a sortable table whose first column names the rows; below it, folded, what its columns mean."""
    entries = [[column.entry(row) for column in columns] for row in rows]
    head = "".join(
        _heading(each, any(_numeric(row[place]) for row in entries)) for place, each in enumerate(columns)
    )
    body = "".join(f"<tr>{_row(row)}</tr>" for row in entries)
    tall = " tall" if len(rows) > _TALL else ""
    return Markup(
        f'<div class="scroll{tall}" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table id="{identifier}" class="sortable"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{_meanings(columns)}"
    )


def listed(names: Sequence[str]) -> list[Column[Sequence[Entry]]]:
    """Return columns of these names over rows that are lists of entries."""
    return [Column(name, itemgetter(place)) for place, name in enumerate(names)]


def _heading(each: Column[Row], numeric: bool) -> str:
    tip = f' title="{escape(each.meaning)}"' if each.meaning else ""
    kinds = " ".join(
        kind for kind, holds in (("number", numeric), ("long", len(each.heading) > _LONG)) if holds
    )
    attribute = f' class="{kinds}"' if kinds else ""
    return f'<th scope="col"{attribute}><button type="button"{tip}>{escape(each.heading)}</button></th>'


def _meanings(columns: Sequence[Column[Row]]) -> str:
    """Return what the columns mean for those who have no pointer to rest on a heading."""
    terms = "".join(
        f"<dt>{escape(each.heading)}</dt><dd>{escape(each.meaning)}</dd>" for each in columns if each.meaning
    )
    if not terms:
        return ""
    return f'<details><summary>What the columns mean</summary><dl class="meanings">{terms}</dl></details>'


def _row(entries: Sequence[Entry]) -> str:
    first, *others = entries
    name = f'<th scope="row" data-value="{escape(first.value)}">{escape(first.text)}</th>'
    return name + "".join(_cell(each) for each in others)


def _numeric(each: Entry) -> bool:
    return isinstance(each.value, float | int) or each.text == NONE


def _cell(each: Entry) -> str:
    kinds = " ".join(kind for kind in ("number" if _numeric(each) else "", each.kind) if kind)
    attribute = f' class="{kinds}"' if kinds else ""
    value = f' data-value="{each.value:.10g}"' if isinstance(each.value, float | int) else ""
    star = '<span class="star" title="best"> ★</span>' if each.kind == "best" else ""
    return f"<td{attribute}{value}>{escape(each.text)}{star}</td>"
