"""What the page's sections have in common: form, templates, tables, legends, grids of charts, who leads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from markupsafe import Markup

from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.cells import Cell
from fedmpi.tables.html import compact, html, template
from fedmpi.tables.table import Column, Table

T = TypeVar("T")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    identifier: str
    title: str
    content: Markup


def file(name: str) -> Markup:
    """Return a file that the page is made of."""
    return Markup(files("fedmpi.analysis.page").joinpath(name).read_text(encoding="utf-8"))


@cache
def _parts() -> Any:
    return template(compact(file("parts.html.j2"))).module


def part(name: str) -> Callable[..., Markup]:
    """Return a part of the page by its name in ``parts.html.j2``."""
    found: Callable[..., Markup] = getattr(_parts(), name)
    return found


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
    chip = Markup('<rect class="fill c{}" width="26" height="10"{}/>')
    fades = [Markup(""), Markup(' fill-opacity="0.55"')]  # as in bars
    chips = [chip.format(place % COLOURS, fades[place // COLOURS % 2]) for place in range(len(names))]
    return part("legend")(title, dict(zip(names, chips, strict=True)))


def cells_legend(cells: Sequence[Cell]) -> Markup:
    """Return the buttons that hide and show algorithms."""
    chip = Markup('<path class="line c{} d{}" d="M1 5h24"/>')
    chips = {cell.label: chip.format(cell.colour, cell.dash) for cell in cells}
    return part("legend")("Algorithms", chips)


PAGE, BY_CASE, CSV = " --html page.html", " --by case", " --csv rows.csv"
"""What a command of `fedmpi report` has further, to show what a table holds."""


def table(
    caption: str, columns: Sequence[Column[Row]], rows: Sequence[Row], identifier: str, options: str = PAGE
) -> Markup:
    """Return a sortable table; below it buttons for a file and a command, and, folded, what columns mean.

    Parameters
    ----------
    caption : str
    columns : sequence of Column
        The first names the rows.
    rows : sequence
        What the columns take their entries from.
    identifier : str
        Of the table's element.
    options : str
        Of the command that shows the same.
    """
    return html(Table(columns, rows, caption), identifier, options)
