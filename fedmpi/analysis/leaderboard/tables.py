"""The tables of a track, in Markdown: judgements, ranks with costs, budgets, scores, settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fedmpi.analysis.leaderboard.board import CONSTANT, OPEN, Board
from fedmpi.analysis.leaderboard.budget import BUDGETS, diverged, expected, tried
from fedmpi.analysis.leaderboard.costs import TO_TARGET, cost, mean
from fedmpi.analysis.leaderboard.rows import ALONE, REFERENCE, Row
from fedmpi.analysis.names import algorithm_name
from fedmpi.judging.estimates import estimate
from fedmpi.tables.table import Column, Table
from fedmpi.tables.texts import markdown, markdown_of

_NONE = "–"
_FEW = 3
"""A setting of so many values at most is one that is counted."""

_MARKS = {"better": " ▲", "worse": " ▼"}


def judged(found: Board) -> str:
    """Return a line per method: its lead over FedAvg, and how sure it is; the largest lead first."""
    lines = [
        [
            algorithm_name(method),
            f"{each.mean:+z.2f}",
            f"{each.median:+z.2f}",
            _NONE if math.isnan(each.low) else f"{each.low:+z.2f} to {each.high:+z.2f}",
            *(_number(chance, ".3f") for chance in (each.better, each.equivalent, each.worse)),
            each.decision,
            each.datasets,
        ]
        for method, each in found.comparisons.items()
    ]
    headings = (
        "",
        "lead over FedAvg, points: mean",
        "median",
        "95 % interval of the mean",
        "P(better)",
        "P(equivalent)",
        "P(worse)",
    )
    return markdown_of((*headings, "decision", "federations"), lines)


def ranks(found: Board) -> str:
    """Return a line per method: average rank, mean scores, wins and costs; without columns of no value."""
    methods = _methods(found)
    spent = {method: cost(found, method) for method in methods}
    percent = " %" if found.metric.percent else ""
    columns: list[Column[str]] = [
        Column("average rank", lambda method: _number(found.average(method), ".1f")),
        Column(f"mean score{percent}", partial(_mean_score, found, "test")),
        Column(f"worst decile{percent}", partial(_mean_score, found, "worst_decile")),
        Column("against FedAvg", partial(_tally, found, REFERENCE)),
        Column("against self-train", partial(_tally, found, ALONE)),
        Column("against the constant", partial(_tally, found, CONSTANT)),
        Column("kB per client and round", lambda method: _number(spent[method].kilobytes, ",.0f")),
        Column("FLOP, times FedAvg's", lambda method: _number(spent[method].flops, ".2f")),
        Column("reach the target", lambda method: _number(spent[method].reached, ".0%")),
        *(
            Column(
                f"{what} to target, times FedAvg's",
                lambda method, name=name: _number(spent[method].to_target[name], ".2f"),  # type: ignore[misc]
            )
            for name, what in TO_TARGET.items()
        ),
    ]
    shown = [each for each in columns if any(each.value(method) != _NONE for method in methods)]
    return markdown(Table([Column("", partial(_name, found)), *shown], methods))


def _mean_score(found: Board, column: str, method: str) -> str:
    entries = [found.entries[data, method] for data in found.finished]
    if any(each.state for each in entries):
        return _NONE
    score = mean(mean(getattr(row, column) for row in each.rows) for each in entries)
    return _shown(found, score)


def _tally(found: Board, reference: str, method: str) -> str:
    if not any(method in found.verdicts(data, reference) for data in found.finished):
        return _NONE
    better, worse = found.tally(method, reference)
    return f"{better} better, {worse} worse"


def budgets(found: Board) -> str:
    """Return a line per method: its candidates, and its expected score by the number that are drawn."""
    counts = {method: tried(found, method) for method in found.competitors}
    most = max((max(each) for each in counts.values() if each), default=0)
    shown = [count for count in BUDGETS if count <= most]
    lines = [
        [
            algorithm_name(method),
            _range(counts[method]),
            _number(diverged(found, method), ".0%"),
            *map(partial(_shown, found), expected(found, method)),
        ]
        for method in found.competitors
    ]
    return markdown_of(
        ("", "candidates", "diverged", *(f"n = {count}" for count in shown)),
        [line[: 3 + len(shown)] for line in lines],
    )


def _range(counts: Sequence[int]) -> str:
    return "–".join(dict.fromkeys(map(str, (min(counts), max(counts))))) if counts else _NONE


def _shown(found: Board, score: float) -> str:
    return _NONE if math.isnan(score) else found.metric.shown(score)


def scores(found: Board) -> str:
    """Return a line per method: its score on each federation, with its interval."""
    best = {data: _best(found, data) for data in found.federations}
    lines = _by_method(found, lambda data, each: _score(found, data, each, found.verdicts(data), best[data]))
    return markdown_of(("", *found.federations), [*lines, *_wins(found), *_constants(found), *_late(found)])


def _by_method(found: Board, entry: Callable[[str, str], str]) -> list[list[str]]:
    """Return a line per method: its name, and its entry on each federation."""
    return [
        [_name(found, method), *(entry(data, method) for data in found.federations)]
        for method in _methods(found)
    ]


def _wins(found: Board) -> list[list[str]]:
    """Return how many methods are better and worse than FedAvg."""
    said = [list(found.verdicts(data).values()) for data in found.federations]
    counts = [_counts(each) for each in said]
    least = [_number(found.least_significant(data), ".1f") for data in found.federations]
    lines = [["better / worse than FedAvg", *counts], ["*smallest significant lead, points*", *least]]
    return lines if any(said) else []


def _counts(said: Sequence[str]) -> str:
    return f"{said.count('better')} / {said.count('worse')} of {len(said)}" if said else _NONE


def _constants(found: Board) -> list[list[str]]:
    """Return what a constant prediction scores, and how many methods are better and worse."""
    if not found.constants:
        return []
    scored, counts = ["*constant prediction*"], ["better / worse than the constant"]
    for data in found.federations:
        each = estimate(list(found.constants.get(data, {}).values()))
        shown = " ± ".join(map(found.metric.shown, (each.mean, each.half)))
        scored.append(_NONE if math.isnan(each.mean) else shown)
        counts.append(_counts(list(found.verdicts(data, CONSTANT).values())))
    return [scored, counts]


def _late(found: Board) -> list[list[str]]:
    """Return how many of the winners' runs have their best round in the last tenth of the rounds."""
    shares = [_number(found.late(data), ".0%") for data in found.federations]
    return [["*best round in the last tenth*", *shares]] if {*shares} != {_NONE} else []


def _best(found: Board, data: str) -> str:
    """Return the best score of a federation as it is printed."""
    entries = [found.entries[data, method] for method in found.competitors]
    means = [entry.score.mean for entry in entries if not entry.state]
    return found.metric.shown(max(means, key=lambda mean: found.metric.sign * mean)) if means else ""


def _score(found: Board, data: str, method: str, verdicts: Mapping[str, str], best: str) -> str:
    entry = found.entries[data, method]
    if entry.state:
        return OPEN if entry.state == OPEN else _NONE
    shown = found.metric.shown(entry.score.mean)
    bold = f"**{shown}**" if shown == best and method not in found.track.unranked else shown
    return f"{bold} ± {found.metric.shown(entry.score.half)}{_MARKS.get(verdicts.get(method, ''), '')}"


def settings(found: Board) -> str:
    """Return a line per method: what the tuning chose on each federation."""
    return markdown_of(("", *found.federations), _by_method(found, partial(_setting, found)))


def _setting(found: Board, data: str, method: str) -> str:
    rows = found.entries[data, method].rows
    parts = [part.partition("=") for part in (rows[0].settings if rows else "").split()]
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, _, value in parts) or _NONE


def choices(found: Board) -> str:
    """Return what validation chose on each federation, of the settings that most methods draw.

    Counts the winners that have each of a few values, or the smallest or largest of many numbers.
    """
    candidates = {
        method: [row for data in found.finished for row in found.entries[data, method].tuning]
        for method in found.competitors
    }
    drawn = {method: {key for row in rows for key in _parts(row)} for method, rows in candidates.items()}
    lines = []
    for key in sorted(set().union(*drawn.values())):
        users = [method for method in drawn if key in drawn[method]]
        if len(users) <= max(2, len(drawn)) / 2:
            continue
        values = {value for method in users for row in candidates[method] if (value := _parts(row).get(key))}
        having: dict[str, _Having] = {
            f"`{key}={value}`": partial(_has, key, value) for value in sorted(values)
        }
        if len(values) > _FEW:
            if not all(map(_is_number, values)):
                continue
            having = {f"the smallest or largest `{key}` tried": partial(_outermost, key)}
        for label, has in having.items():
            counts = [_choosing(found, data, has, users) for data in found.federations]
            lines.append([label, f"{_tried(found, has, users):.0%}", *counts])
    return markdown_of(("", "of the candidates", *found.federations), lines) if lines else ""


_Having = Callable[[Sequence[Row], Row], bool]
"""Takes a method's candidates on a federation, and one of them: whether a line counts this one."""


def _parts(row: Row) -> dict[str, str]:
    """Return the settings that the tuning varies."""
    return {key: value for key, _, value in (part.partition("=") for part in row.settings.split())}


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _has(key: str, value: str, _: Sequence[Row], row: Row) -> bool:
    return _parts(row).get(key) == value


def _outermost(key: str, tuning: Sequence[Row], row: Row) -> bool:
    """Return whether no candidate has a smaller number, or none a larger one.

    Rates are compared among candidates with the same optimizer, since their range may depend on it.
    """
    parts, of = _parts(row), key.rpartition(".")[0]
    others = [each for each in map(_parts, tuning) if each.get(of) == parts.get(of)]
    numbers = [float(each[key]) for each in others if key in each]
    return bool(numbers) and key in parts and float(parts[key]) in (min(numbers), max(numbers))


def _tried(found: Board, has: _Having, methods: Sequence[str]) -> float:
    """Return the share of some methods' candidates that a line counts."""
    tuned = (found.entries[data, method].tuning for data in found.finished for method in methods)
    return mean(has(rows, row) for rows in tuned for row in rows)


def _choosing(found: Board, data: str, has: _Having, methods: Sequence[str]) -> str:
    """Return how many of some methods' winners a line counts on a federation."""
    if data not in found.finished:
        return OPEN
    entries = [each for method in methods if (each := found.entries[data, method]).rows]
    count = sum(has(each.tuning, each.rows[0]) for each in entries)
    return f"{count} of {len(entries)}"


def _methods(found: Board) -> list[str]:
    return [*found.competitors, *(method for method in found.methods if method in found.track.unranked)]


def _name(found: Board, method: str) -> str:
    name = algorithm_name(method)
    return f"*{name}*" if method in found.track.unranked else name


def _number(value: float, form: str) -> str:
    return _NONE if math.isnan(value) else format(value, form)
