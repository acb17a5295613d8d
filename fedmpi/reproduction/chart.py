"""The picture of the first page: a bar per paper, kind of question and selection rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedmpi.reproduction.overview import STATES, Tally

WIDTH, LEFT, TOP = 776, 346, 34
_STEP, _GAP = 22, 8
_LOOKS = (("#009E73", "#ffffff"), ("#D55E00", "#ffffff"), ("#c9c9c9", "#222222"), ("#f4f4f4", "#222222"))
"""Colours of `STATES`: of a bar, and of the number on it."""


def chart(papers: Sequence[tuple[str, Sequence[Tally]]]) -> dict[str, Any]:
    """Return what the template of the picture needs.

    Parameters
    ----------
    papers : sequence of (name, tallies)
    """
    rows, y = [], TOP
    for name, tallies in papers:
        for number, tally in enumerate(tallies):
            label = f"{len(tally.answers)} {tally.what}, {tally.rule}"
            rows.append({"paper": "" if number else name, "label": label, "y": y, "bars": _bars(tally)})
            y += _STEP
        y += _GAP
    legend = [
        {"x": LEFT + place, "label": state, "colour": colour}
        for place, state, (colour, _) in zip((0, 95, 255, 345), STATES, _LOOKS, strict=True)
    ]
    return {"width": WIDTH, "height": y, "left": LEFT, "legend": legend, "rows": rows}


def _bars(tally: Tally) -> list[dict[str, Any]]:
    """Return the parts of a bar; together they are as wide as the picture allows."""
    unit = (WIDTH - LEFT - 10) / max(len(tally.answers), 1)
    bars: list[dict[str, Any]] = []
    x = float(LEFT)
    for count, (colour, ink) in zip(tally.counts, _LOOKS, strict=True):
        width = count * unit
        if count:
            bars.append(
                {"x": round(x, 1), "width": round(width, 1), "colour": colour, "ink": ink, "count": count}
            )
        x += width
    return bars
