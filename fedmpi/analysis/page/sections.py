"""What the page's sections have in common: their form, legends, grids of charts, who leads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup, escape

from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.settings import Cell

T = TypeVar("T")


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
    chips = [f'<rect class="fill c{place % COLOURS}" width="26" height="10"/>' for place in range(len(names))]
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
