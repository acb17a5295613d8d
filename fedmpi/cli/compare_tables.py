"""Tables of ``fedmpi compare``: all figures, and a line for each case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from fedmpi.analysis.comparison.compare import CaseResult
from fedmpi.analysis.comparison.merits import Ratio
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import Column, Entry, Table, fields, number, ranked

_DUST = 1e-9
"""Below it a value is the rest of a rounding."""
_FLAG = "*"


def ratio_table(title: str, found: Sequence[Ratio]) -> Table[tuple[str, Ratio]]:
    """Return a line for each figure."""
    unit = f"{found[0].unit}s"
    columns: list[Column[tuple[str, Ratio]]] = [
        Column("figure", lambda row: row[0]),
        Column("better", lambda row: row[1].merit.better),
        Column("A", lambda row: _figure(row[1], row[1].first)),
        Column("B", lambda row: _figure(row[1], row[1].second)),
        Column("B / A", lambda row: row[1].ratio, format=".3f"),
        Column("B - A", lambda row: _figure(row[1], row[1].difference, "+")),
        Column("95 % interval", lambda row: _interval(row[1]), numeric=True),
        Column(unit, lambda row: row[1].count),
        Column("B is", lambda row: row[1].verdict),
    ]
    spare = [unit, "better", "B - A", "A"]
    spare.insert(len(spare) if any(map(_interval, found)) else 0, "95 % interval")
    rows = list(zip(_titles(found), found, strict=True))
    return Table(ranked(columns, spare), rows, title, [_meaning(found[0])])


def _titles(found: Sequence[Ratio]) -> list[str]:
    """Return the titles of figures; of those of a metric but the first the rule alone."""
    parts = [each.merit.title.partition(", ") for each in found]
    return [
        rule if place and parts[place - 1][0] == of else f"{of}{comma}{rule}"
        for place, (of, comma, rule) in enumerate(parts)
    ]


def _meaning(each: Ratio) -> str:
    """Return what the columns of a table mean."""
    first = "" if each.unit == "pair" else f"Means over {each.unit}s, each one the mean of its pairs. "
    return f'{first}"B is" rests on the interval: of B - A for scores, of B / A for all else'


def _figure(each: Ratio, value: float, sign: str = "") -> Entry:
    """Return a value with its figure's digits; with two that say something where they would all be 0."""
    found = each.merit.factor * value
    text = f"{found:{sign},.{each.merit.digits}f}"
    return Entry(text if abs(found) < _DUST or text.strip("+-0.") else f"{found:{sign}.2g}", found)


def _interval(each: Ratio) -> str | None:
    """Return the interval that the verdict rests on."""
    if each.decided_by == "ratio":
        return None if math.isnan(each.low) else f"{each.low:.3f} to {each.high:.3f}"
    if math.isnan(each.half):
        return None
    return " to ".join(_figure(each, each.difference + half, "+").text for half in (-each.half, each.half))


def case_table(cases: Sequence[CaseResult]) -> Table[CaseResult]:
    """Return a line for each case."""
    columns: list[Column[CaseResult]] = [
        *fields("dataset", "algorithm"),
        Column("B is", lambda case: "INVALID" if case.invalid else "VALID"),
        Column("pairs", lambda case: len(case.pairs), spare=4),
        Column("judged by", lambda case: _judged(case).heading, spare=1),
        Column("A", _first),
        Column("B - A", _difference),
        Column("s/round B / A", _ratio_of("round_seconds_median"), spare=2),
        Column("total s B / A", _ratio_of("total_seconds"), spare=5),
        Column("s to target B / A", _ratio_of("seconds_to_target"), spare=3),
    ]
    if not any(each.merit.name == "seconds_to_target" for case in cases for each in case.ratios):
        del columns[-1]
    flagged = any(column.entry(case).text.endswith(_FLAG) for column in columns[7:] for case in cases)
    return Table(columns, cases, "By case", [f"{_FLAG}: not like for like, see above"] if flagged else [])


def _judged(case: CaseResult) -> Metric:
    return case.pairs[0].first.metrics[0]


def _named(case: CaseResult, name: str) -> Ratio | None:
    return next((each for each in case.ratios if each.merit.name == name), None)


def _first(case: CaseResult) -> Entry | None:
    metric = _judged(case)
    found = _named(case, metric.field())
    return None if found is None else Entry(metric.shown(found.first), found.first)


def _difference(case: CaseResult) -> Entry | None:
    found = _named(case, _judged(case).field())
    if found is None:
        return None
    shown, merit = _figure(found, found.difference, "+"), found.merit
    half = "" if math.isnan(found.half) else f" ± {merit.factor * found.half:,.{merit.digits}f}"
    return replace(shown, text=f"{shown.text}{half}")


def _ratio_of(name: str) -> Callable[[CaseResult], Entry | None]:
    """Return a column's ratios, with a mark where the runs are not like for like."""

    def value(case: CaseResult) -> Entry | None:
        found = _named(case, name)
        if found is None:
            return None
        shown = number(found.ratio, 3)
        return replace(shown, text=f"{shown.text}{_FLAG * found.flagged}")

    return value
