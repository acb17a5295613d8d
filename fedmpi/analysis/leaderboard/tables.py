"""The tables of a track, in Markdown: ranks with costs, scores, settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from fedmpi.analysis.leaderboard.board import OPEN, UNRANKED, Board, cost, mean
from fedmpi.analysis.leaderboard.rows import REFERENCE
from fedmpi.analysis.names import algorithm_name
from fedmpi.judging.estimates import estimate
from fedmpi.tables.table import Column, Table
from fedmpi.tables.texts import markdown, markdown_of

ALONE = "self-train"
_NONE = "–"
_MARKS = {"better": " ▲", "worse": " ▼"}
_WHERE_LEARNED = ("rank where learned", "where learned")
"""Columns that only tracks have where methods do not learn on every federation."""


def ranks(found: Board) -> str:
    """Return a line per method: average rank, mean score, leads and costs."""
    there, methods = found.learned, _methods(found)
    spent = {method: cost(found, method) for method in methods}
    columns: list[Column[str]] = [
        Column("", lambda method: _name(found, method)),
        Column("average rank", lambda method: _number(found.average(method), ".1f")),
        Column("rank where learned", lambda method: _number(there.mean_rank(method), ".1f")),
        Column(
            f"mean score{' %' if found.metric.percent else ''}", lambda method: _mean_score(found, method)
        ),
        Column("against FedAvg", lambda method: _tally(found, method, REFERENCE)),
        Column("where learned", lambda method: _tally(there, method, REFERENCE)),
        Column("against self-train", lambda method: _tally(found, method, ALONE)),
        Column("kB per client and round", lambda method: _number(spent[method].kilobytes, ",.0f")),
        Column("FLOP, times FedAvg's", lambda method: _number(spent[method].flops, ".2f")),
        Column("reach the target", lambda method: _number(spent[method].reached, ".0%")),
        Column("time to target, times FedAvg's", lambda method: _number(spent[method].seconds, ".2f")),
    ]
    shown = [each for each in columns if found.not_learned or each.heading not in _WHERE_LEARNED]
    return markdown(Table(shown, methods))


def _mean_score(found: Board, method: str) -> str:
    entries = [found.entries[data, method] for data in found.federations]
    if any(each.state for each in entries):
        return _NONE
    return found.metric.shown(mean(each.score.mean for each in entries))


def _tally(found: Board, method: str, reference: str) -> str:
    unjudged = (method, *UNRANKED, *found.track.few_rates)
    if reference in unjudged or method in UNRANKED or reference not in found.methods:
        return _NONE
    better, worse = found.tally(method, reference)
    return f"{better} better" + ("" if method in found.track.few_rates else f", {worse} worse")


def scores(found: Board) -> str:
    """Return a line per method: its score on each federation, with its interval."""
    verdicts = {data: found.leads(data) for data in found.federations}
    best = {data: _best(found, data) for data in found.federations}
    lines = _by_method(found, lambda data, each: _score(found, data, each, verdicts[data], best[data]))
    return markdown_of(("", *found.federations), [*lines, *_constants(found)])


def _by_method(found: Board, entry: Callable[[str, str], str]) -> list[list[str]]:
    """Return a line per method: its name, and its entry on each federation."""
    return [
        [_name(found, method), *(entry(data, method) for data in found.federations)]
        for method in _methods(found)
    ]


def _constants(found: Board) -> list[list[str]]:
    """Return what a constant prediction scores, and how many methods are better and worse."""
    if not found.constants:
        return []
    scored, counts = ["*constant prediction*"], ["better / worse than that"]
    for data in found.federations:
        each, place = estimate(list(found.constants.get(data, {}).values())), found.standings.get(data)
        shown = " ± ".join(map(found.metric.shown, (each.mean, each.half)))
        scored.append(_NONE if math.isnan(each.mean) else shown)
        counts.append(_NONE if place is None else f"{place.better} / {place.worse} of {place.count}")
    return [scored, counts]


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
    return markdown_of(("", *found.federations), _by_method(found, partial(_setting, found)))


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
    return algorithm_name(method) + ("†" if method in found.track.few_rates else "")


def _number(value: float, form: str) -> str:
    return _NONE if math.isnan(value) else format(value, form)
