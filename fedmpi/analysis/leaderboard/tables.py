"""The tables of a track, in Markdown: ranks with costs, scores, settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fedmpi.analysis.leaderboard.board import OPEN, UNRANKED, Board, cost, leads, tally
from fedmpi.analysis.leaderboard.learned import leads_where_learned, not_learned, rank_where_learned, standing
from fedmpi.analysis.leaderboard.rows import REFERENCE
from fedmpi.analysis.names import algorithm_name
from fedmpi.judging.estimates import estimate
from fedmpi.tables.markdown import markdown_of

ALONE = "self-train"
_NONE = "–"
_MARKS = {"better": " ▲", "worse": " ▼"}


def ranks(found: Board) -> str:
    """Return a line per method: average rank, mean score, leads and costs."""
    headings = (
        *(
            "",
            "average rank",
            *_where_learned(found, "rank where learned"),
            f"mean score{' %' if found.metric.percent else ''}",
        ),
        "against FedAvg",
        *_where_learned(found, "where learned"),
        *("against self-train", "kB per client and round"),
        *("FLOP, times FedAvg's", "reach the target", "time to target, times FedAvg's"),
    )
    return markdown_of(headings, (_rank_line(found, method) for method in _methods(found)))


def _rank_line(found: Board, method: str) -> list[str]:
    spent = cost(found, method)
    entries = [found.entries[data, method] for data in found.federations]
    mean = math.nan if any(each.state for each in entries) else _mean([each.score.mean for each in entries])
    return [
        _name(found, method),
        _number(found.average(method), ".1f"),
        *_where_learned(found, _number(rank_where_learned(found, method), ".1f")),
        _NONE if math.isnan(mean) else found.metric.shown(mean),
        _tally(found, method, REFERENCE),
        *_where_learned(found, _learned_tally(found, method)),
        _tally(found, method, ALONE),
        _number(spent.kilobytes, ",.0f"),
        _number(spent.flops, ".2f"),
        _number(spent.reached, ".0%"),
        _number(spent.seconds, ".2f"),
    ]


def _where_learned(found: Board, *cells: str) -> list[str]:
    """Return cells of the columns that only tracks have where methods do not learn on every federation."""
    return list(cells) if not_learned(found) else []


def _tally(found: Board, method: str, reference: str) -> str:
    unjudged = (method, *UNRANKED, *found.few_rates)
    if reference in unjudged or method in UNRANKED or reference not in found.methods:
        return _NONE
    return _counts(found, method, tally(found, method, reference))


def _learned_tally(found: Board, method: str) -> str:
    unjudged = (method, *UNRANKED, *found.few_rates)
    if REFERENCE in unjudged or method in UNRANKED or REFERENCE not in found.methods:
        return _NONE
    return _counts(found, method, leads_where_learned(found, method))


def _counts(found: Board, method: str, counts: tuple[int, int]) -> str:
    return f"{counts[0]} better" + ("" if method in found.few_rates else f", {counts[1]} worse")


def scores(found: Board) -> str:
    """Return a line per method: its score on each federation, with its interval."""
    verdicts = {data: leads(found, data) for data in found.federations}
    best = {data: _best(found, data) for data in found.federations}
    lines = (
        [
            _name(found, each),
            *(_score(found, data, each, verdicts[data], best[data]) for data in found.federations),
        ]
        for each in _methods(found)
    )
    return markdown_of(("", *found.federations), [*lines, *_constants(found)])


def _constants(found: Board) -> list[list[str]]:
    """Return what a constant prediction scores, and how many methods are better and worse."""
    if not found.constants:
        return []
    scored, counts = [], []
    for data in found.federations:
        each = estimate(list(found.constants.get(data, {}).values()))
        shown = " ± ".join(map(found.metric.shown, (each.mean, each.half)))
        scored.append(_NONE if math.isnan(each.mean) else shown)
        place = standing(found, data)
        counts.append(_NONE if place is None else f"{place.better} / {place.worse} of {place.count}")
    return [["*constant prediction*", *scored], ["better / worse than that", *counts]]


def _best(found: Board, data: str) -> str:
    """Return the best score of a federation as it is printed."""
    entries = [found.entries[data, method] for method in found.competitors]
    means = [entry.score.mean for entry in entries if not entry.state]
    return found.metric.shown(max(means, key=lambda mean: found.metric.sign * mean)) if means else ""


def _score(found: Board, data: str, method: str, verdicts: Mapping[str, str], best: str) -> str:
    entry = found.entries[data, method]
    if entry.state:
        return "open" if entry.state == OPEN else _NONE
    shown = found.metric.shown(entry.score.mean)
    bold = f"**{shown}**" if shown == best and method not in UNRANKED else shown
    return f"{bold} ± {found.metric.shown(entry.score.half)}{_MARKS.get(verdicts.get(method, ''), '')}"


def settings(found: Board) -> str:
    """Return a line per method: what the tuning chose on each federation."""
    lines = (
        [_name(found, method), *(_setting(found, data, method) for data in found.federations)]
        for method in _methods(found)
    )
    return markdown_of(("", *found.federations), lines)


def _setting(found: Board, data: str, method: str) -> str:
    rows = found.entries[data, method].rows
    parts = [part.partition("=") for part in (rows[0].settings if rows else "").split()]
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, _, value in parts) or _NONE


def _methods(found: Board) -> list[str]:
    return [*found.competitors, *(method for method in found.methods if method in UNRANKED)]


def _name(found: Board, method: str) -> str:
    return f"*{algorithm_name(method)}*" if method in UNRANKED else marked(found, method)


def marked(found: Board, method: str) -> str:
    """Return a method's name, with a mark where it had too few rates."""
    return algorithm_name(method) + ("†" if method in found.few_rates else "")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _number(value: float, form: str) -> str:
    return _NONE if math.isnan(value) else format(value, form)
