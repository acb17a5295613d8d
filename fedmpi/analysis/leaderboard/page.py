"""The leaderboard's page (Markdown), and a picture of ranks for each track (SVG); text is in templates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.analysis.leaderboard import tables
from fedmpi.analysis.leaderboard.board import Board, at_floor, names, rank_off_floor
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.analysis.names import algorithm_name

_WIDTH, _LEFT, _RIGHT, _TOP, _STEP = 760, 110, 40, 62, 20


def pages(boards: Sequence[Board], name: str) -> dict[str, str]:
    """Return the page and its pictures by their paths beside it; they depend on the rows only.

    Parameters
    ----------
    boards : sequence of Board
    name : str
        File name of the page.
    """
    pictures = {
        f"images/leaderboard-{found.name}.svg": _rendered("ranks.svg", **_picture(found))
        for found in boards
        if found.ranking is not None
    }
    own = [each.argument for each in boards if not each.bundled]
    return {
        name: _rendered("page.md", tracks=[_track(each) for each in boards], seeds=len(SEEDS), own=own),
        **pictures,
    }


def _rendered(name: str, **values: Any) -> str:
    source = files("fedmpi.analysis.leaderboard").joinpath(f"{name}.j2").read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=name.endswith(".svg"),
    )
    return environment.from_string(source).render(**values)


def _track(found: Board) -> dict[str, Any]:
    """Return what the template says of a track."""
    ranking, open_ = found.ranking, found.open
    return {
        "name": found.name,
        "argument": found.argument,
        "title": found.name.capitalize(),
        "answer": answer(found),
        "near_floor": near_floor(found),
        "floors": bool(found.floors),
        "open": ", ".join(f"{data} {count}" for data, count in open_.items()),
        "begun": any(entry.rows for entry in found.entries.values()),
        "ranks": tables.ranks(found),
        "scores": tables.scores(found),
        "settings": tables.settings(found),
        "metric": found.metric.title,
        "difference": "" if ranking is None else f"{ranking.critical_difference:.1f}",
        "p": "" if ranking is None else f"{ranking.p:.2g}",
        "over": f"{len(found.ranked)} of {len(found.federations)}" if open_ else f"all {len(found.ranked)}",
        "competitors": len(found.competitors),
    }


def answer(found: Board) -> str:
    """Return the first thing to know of a track."""
    if found.ranking is None and not found.open:
        return "All runs are there. Ranks need two federations and three methods, so there are scores alone."
    if found.ranking is None:
        return "Nothing is ranked yet."
    first, alike = found.competitors[0], found.alike
    behind = [algorithm_name(each) for each in found.competitors if each not in alike]
    lead = f"{algorithm_name(first)} has the best average rank: {found.average(first):.1f}"
    begin = f"{lead} among {len(found.competitors)} methods on {len(found.ranked)} federations."
    if not behind:
        return f"{begin} The test tells no method apart from it."
    are = "is" if len(behind) == 1 else "are"
    others = "; the test tells no other method apart from it" if alike[1:] else ""
    return f"{begin} {names(behind)} {are} behind it by more than the critical difference{others}."


def near_floor(found: Board) -> str:
    """Return which federations are at their floor, and who is ahead on the others."""
    low = at_floor(found)
    if not low:
        return ""
    listed = names([f"{data} ({better} of {count})" for data, (better, count) in low.items()])
    text = (
        "fewer than half of the methods are better than the same prediction for all examples of a client on "
        f"{listed}. Ranks there say little about learning."
    )
    ranked = {method: rank_off_floor(found, method) for method in found.competitors}
    best = sorted(
        (method for method in ranked if not math.isnan(ranked[method])), key=lambda each: ranked[each]
    )
    if not best:
        return text
    count = len([data for data in found.ranked if data not in low])
    first = names([f"{algorithm_name(each)} ({ranked[each]:.1f})" for each in best[:3]])
    others = f"the other {count} federations" if count > 1 else "the other one"
    return f"{text} On {others} {first} have the best average ranks."


def _picture(found: Board) -> dict[str, Any]:
    """Return what the template of the picture needs."""
    assert found.ranking is not None
    methods, best = found.competitors, found.average(found.competitors[0])
    unit = (_WIDTH - _LEFT - _RIGHT) / (len(methods) - 1)
    end = min(best + found.ranking.critical_difference, len(methods))
    return {
        "width": _WIDTH,
        "height": _TOP + _STEP * len(methods),
        "left": _LEFT,
        "right": _RIGHT,
        "over": len(found.ranked),
        "difference": f"{found.ranking.critical_difference:.1f}",
        "band": {"x": _place(best, unit), "width": round((end - best) * unit, 1)},
        "ticks": [{"rank": rank, "x": _place(rank, unit)} for rank in _ticks(len(methods))],
        "rows": [
            {
                "method": algorithm_name(method),
                "x": _place(found.average(method), unit),
                "y": _TOP + _STEP * row,
                "rank": f"{found.average(method):.1f}",
                "alike": method in found.alike,
            }
            for row, method in enumerate(methods)
        ],
    }


def _place(rank: float, unit: float) -> float:
    return round(_LEFT + (rank - 1) * unit, 1)


def _ticks(count: int) -> Iterable[int]:
    return range(1, count + 1, math.ceil(count / 12))
