"""What the page's sections have in common: their form, tables, legends, grids of charts, who leads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

from markupsafe import Markup, escape

from fedmpi.analysis.entries import NONE, Column, Entry
from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.settings import Cell

T = TypeVar("T")
Row = TypeVar("Row")

_TALL = 40
"""Rows beyond which a table scrolls by itself."""
_LONG = 16
"""Letters beyond which a heading is kept from folding into a line per word."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    identifier: str
    title: str
    content: Markup


def grid(charts: Iterable[Markup], kind: str = "") -> Markup:
    """Return charts beside each other."""
    return Markup(f'<div class="{f"grid {kind}".strip()}">') + Markup("").join(charts) + Markup("</div>")


def leaders(cells: Iterable[T], figure: Callable[[T], float], digits: int) -> list[T]:
    """Return the cells of the best figure, several where they tie, none where none has one.

    Figures tie that are the same as printed, with `digits` after the point.

    Parameters
    ----------
    figure : callable
        Higher is better; NaN for none.
    """
    found = [(figure(cell), cell) for cell in cells]
    present = [(value, cell) for value, cell in found if not math.isnan(value)]
    best = max((value for value, _ in present), default=math.nan)
    return [cell for value, cell in present if f"{value:.{digits}f}" == f"{best:.{digits}f}"]


def areas_legend(title: str, names: Sequence[str]) -> Markup:
    """Return the buttons that hide and show areas, coloured in their order."""
    fades = ["", ' fill-opacity="0.55"']  # as in bars
    chips = [
        f'<rect class="fill c{place % COLOURS}" width="26" height="10"{fades[place // COLOURS % 2]}/>'
        for place in range(len(names))
    ]
    return _legend(title, dict(zip(names, chips, strict=True)))


def cells_legend(cells: Sequence[Cell]) -> Markup:
    """Return the buttons that hide and show algorithms."""
    chips = {cell.label: f'<path class="line c{cell.colour} d{cell.dash}" d="M1 5h24"/>' for cell in cells}
    return _legend("Algorithms", chips)


def _legend(title: str, chips: Mapping[str, str]) -> Markup:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-toggle="{escape(label)}">'
        f'<svg viewBox="0 0 26 10" aria-hidden="true">{chip}</svg>{escape(label)}</button>'
        for label, chip in chips.items()
    )
    return Markup(
        f'<div class="legend" role="group" aria-label="{title}: show or hide">{title} {buttons}</div>'
    )


def table(caption: str, columns: Sequence[Column[Row]], rows: Sequence[Row], identifier: str) -> Markup:
    """Return a sortable table; below it, folded, what its columns mean.

    Parameters
    ----------
    caption : str
    columns : sequence of Column
        The first names the rows.
    rows : sequence
        What the columns take their entries from.
    identifier : str
        Of the table's element.
    """
    entries = [[column.entry(row) for column in columns] for row in rows]
    head = "".join(
        _heading(each, any(_numeric(row[place]) for row in entries)) for place, each in enumerate(columns)
    )
    body = "".join(f"<tr>{_table_row(row)}</tr>" for row in entries)
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


def _table_row(entries: Sequence[Entry]) -> str:
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
