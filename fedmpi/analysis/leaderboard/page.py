"""The leaderboard's page (Markdown), and a picture of ranks for each track (SVG); text is in templates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard import tables
from fedmpi.analysis.leaderboard.board import Board, names
from fedmpi.analysis.leaderboard.learned import (
    leads_where_learned,
    learned,
    not_learned,
    rank_where_learned,
    ranking_where_learned,
)
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.analysis.names import algorithm_name
from fedmpi.metrics.metric import Metric

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
        name: _rendered(
            "page.md",
            tracks=[_track(each) for each in boards],
            seeds=len(SEEDS),
            own=own,
            few_rates="; ".join(filter(None, map(few_rates, boards))),
        ),
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
        "few_rates": bool(found.few_rates),
        "learned": where_learned(found),
        "constant": constant_of(found.metric) if found.constants else "",
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
    behind = [algorithm_name(each) for each in found.behind]
    lead = f"{algorithm_name(first)} has the best average rank: {found.average(first):.1f}"
    begin = f"{lead} among {len(found.competitors)} methods on {len(found.ranked)} federations."
    apart = [each for each in found.competitors if each not in alike]
    left = [algorithm_name(each) for each in apart if each in found.few_rates]
    unjudged = f" Marked †, so not called worse: {names(left)}." if left else ""
    if not behind:
        return f"{begin} No {'other ' if left else ''}method differs from it significantly.{unjudged}"
    are = "is" if len(behind) == 1 else "are"
    others = "; no other method differs from it significantly" if alike[1:] else ""
    return f"{begin} {names(behind)} {are} behind it by more than the critical difference{others}.{unjudged}"


def few_rates(found: Board) -> str:
    """Return which methods had which rates, too few of them; nothing where none had."""
    if not found.few_rates:
        return ""
    said = [
        f"{names([algorithm_name(method) for method in methods])} {names([f'{rate:g}' for rate in rates])}"
        for rates, methods in grouped(found.few_rates, found.few_rates.__getitem__).items()
    ]
    return f"{found.name}: {', '.join(said)}"


def constant_of(metric: Metric) -> str:
    """Return what a constant prediction is for a metric."""
    if metric.scope == "client":
        return "each client's most frequent class of training, for all its test examples"
    return "one prediction for all test examples"


def where_learned(found: Board) -> list[str]:
    """Return what is to be known first where methods do not learn on every federation; the best first."""
    without, rest = not_learned(found), learned(found)
    if not without:
        return []
    counts = {
        data: f"{each.better} better, {each.worse} worse of {each.count}" for data, each in without.items()
    }
    listed = names([f"{data} ({count})" for data, count in counts.items()])
    said = (
        f"On {len(without)} of {len(found.ranked)} federations at most one method is significantly better "
        f"than a constant prediction ({constant_of(found.metric)}): {listed}."
    )
    if not rest:
        return [said]
    first = f"On {names(rest)} methods learn more than a constant prediction."
    return [f"{first} {_against_fedavg(found)}{_best_there(found)}", said]


def _against_fedavg(found: Board) -> str:
    """Return which methods are better and worse than FedAvg where methods learn."""
    tallies = {method: leads_where_learned(found, method) for method in found.competitors}
    said = [
        (
            names([algorithm_name(method) for method, each in tallies.items() if each[place]])
            if any(each[place] for each in tallies.values())
            else "no method"
        )
        for place in (0, 1)
    ]
    return f"Better than FedAvg on at least one of them: {said[0]}; worse: {said[1]}."


def _best_there(found: Board) -> str:
    """Return who has the best average ranks where methods learn, three and those that tie with the third."""
    over = ranking_where_learned(found)
    if over is None:
        return ""
    ranks = {method: rank_where_learned(found, method) for method in found.competitors}
    order = sorted(ranks, key=lambda method: ranks[method])
    last = ranks[order[min(3, len(order)) - 1]]
    best = [f"{algorithm_name(method)} ({ranks[method]:.1f})" for method in order if ranks[method] <= last]
    apart = [method for method in order if ranks[method] - ranks[order[0]] >= over.critical_difference]
    behind = [method for method in apart if method not in found.few_rates]
    others = names([algorithm_name(method) for method in behind]) if behind else "no method"
    return (
        f" The best average ranks there: {names(best)}. Behind the first by more than the critical "
        f"difference ({over.critical_difference:.1f}): {others}."
    )


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
        "marked": bool(found.few_rates),
        "ticks": [{"rank": rank, "x": _place(rank, unit)} for rank in _ticks(len(methods))],
        "rows": [
            {
                "method": tables.marked(found, method),
                "x": _place(found.average(method), unit),
                "y": _TOP + _STEP * row,
                "rank": f"{found.average(method):.1f}",
                "fill": _fill(found, method),
            }
            for row, method in enumerate(methods)
        ],
    }


def _fill(found: Board, method: str) -> str:
    if method in found.few_rates:
        return "#ffffff"
    return "#777777" if method in found.behind else "#0072B2"


def _place(rank: float, unit: float) -> float:
    return round(_LEFT + (rank - 1) * unit, 1)


def _ticks(count: int) -> Iterable[int]:
    return range(1, count + 1, math.ceil(count / 12))
