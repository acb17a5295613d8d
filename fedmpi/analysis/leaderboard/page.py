"""The leaderboard's page (Markdown), and a picture of ranks for each track (SVG); text is in templates."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard import tables
from fedmpi.analysis.leaderboard.board import Board
from fedmpi.analysis.leaderboard.rows import REFERENCE
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.analysis.names import algorithm_name, joined
from fedmpi.metrics.metric import Metric


def pages(boards: Sequence[Board], name: str) -> dict[str, str]:
    """Return the page and its pictures by their paths beside it; they depend on the rows only.

    Parameters
    ----------
    boards : sequence of Board
    name : str
        File name of the page.
    """
    page = _rendered(
        "page.md",
        tracks=[(found, [*where_learned(found), answer(found)]) for found in boards],
        tables=tables,
        constant_of=constant_of,
        seeds=len(SEEDS),
        own=[each.track.argument for each in boards if not each.track.bundled],
        few_rates="; ".join(filter(None, map(few_rates, boards))),
    )
    ranked = [found for found in boards if found.ranking is not None]
    places = [f"images/leaderboard-{found.track.name}.svg" for found in ranked]
    pictures = [_rendered("ranks.svg", board=found, marked=tables.marked) for found in ranked]
    return {name: page, **dict(zip(places, pictures, strict=True))}


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


def answer(found: Board) -> str:
    """Return the first thing to know of a track."""
    if found.ranking is None and not found.open:
        return "All runs are there. Ranks need two federations and three methods, so there are scores alone."
    if found.ranking is None:
        return "Nothing is ranked yet."
    first, alike, behind = found.competitors[0], found.alike, found.behind
    lead = f"{algorithm_name(first)} has the best average rank: {found.average(first):.1f}"
    begin = f"{lead} among {len(found.competitors)} methods on {len(found.ranked)} federations."
    left = [each for each in found.competitors if each in found.track.few_rates and each not in alike]
    unjudged = f" Marked †, so not called worse: {_methods(left)}." if left else ""
    if not behind:
        return f"{begin} No {'other ' if left else ''}method differs from it significantly.{unjudged}"
    are = "is" if len(behind) == 1 else "are"
    others = "; no other method differs from it significantly" if alike[1:] else ""
    return (
        f"{begin} {_methods(behind)} {are} behind it by more than the critical difference{others}.{unjudged}"
    )


def few_rates(found: Board) -> str:
    """Return which methods had which rates, too few of them; nothing where none had."""
    by_rates = grouped(found.track.few_rates, found.track.few_rates.__getitem__)
    said = [f"{_methods(each)} {joined([f'{rate:g}' for rate in rates])}" for rates, each in by_rates.items()]
    return f"{found.track.name}: {', '.join(said)}" if said else ""


def constant_of(metric: Metric) -> str:
    """Return what a constant prediction is for a metric."""
    if metric.scope == "client":
        return "each client's most frequent class of training, for all its test examples"
    return "one prediction for all test examples"


def where_learned(found: Board) -> list[str]:
    """Return what is to be known first where methods do not learn on every federation; the best first."""
    without, there = found.not_learned, found.learned
    if not without:
        return []
    listed = [
        f"{data} ({each.better} better, {each.worse} worse of {each.count})" for data, each in without.items()
    ]
    said = (
        f"On {len(without)} of {len(found.ranked)} federations at most one method is significantly better "
        f"than a constant prediction ({constant_of(found.metric)}): {joined(listed)}."
    )
    if not there.federations:
        return [said]
    tallies = {method: there.tally(method, REFERENCE) for method in found.competitors}
    better = _methods([method for method, (wins, _) in tallies.items() if wins])
    worse = _methods([method for method, (_, losses) in tallies.items() if losses])
    learn = f"On {joined(there.federations)} methods learn more than a constant prediction"
    first = f"{learn}. Better than FedAvg on at least one of them: {better}; worse: {worse}."
    return [first + _best_there(there, found.competitors), said]


def _best_there(there: Board, methods: Sequence[str]) -> str:
    """Return who has the best average ranks where methods learn, three and those that tie with the third."""
    if there.ranking is None:
        return ""
    difference = there.ranking.critical_difference
    ranks = {method: there.average(method) for method in methods}
    order = sorted(ranks, key=ranks.__getitem__)
    last = ranks[order[min(3, len(order)) - 1]]
    best = [f"{algorithm_name(method)} ({ranks[method]:.1f})" for method in order if ranks[method] <= last]
    apart = [method for method in order if ranks[method] - ranks[order[0]] >= difference]
    behind = _methods([method for method in apart if method not in there.track.few_rates])
    return (
        f" The best average ranks there: {joined(best)}. Behind the first by more than the critical "
        f"difference ({difference:.1f}): {behind}."
    )


def _methods(listed: Sequence[str]) -> str:
    return joined([algorithm_name(each) for each in listed]) if listed else "no method"
