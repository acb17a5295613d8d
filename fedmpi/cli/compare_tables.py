"""Tables of ``fedmpi compare``: all figures, and a line for each case."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.analysis.comparison.compare import CaseResult
from fedmpi.analysis.comparison.merits import Ratio
from fedmpi.cli.plain_table import PlainTable

_SPARE_OF_CASES = ("total s B / A", "pairs", "s to target B / A", "s/round B / A", "judged by")
_CASE_FIGURES = ("round_seconds_median", "total_seconds", "seconds_to_target")
_FIRST_RATIO = 7
"""Column of the first ratio in the table of cases."""
_DUST = 1e-9
"""Below it a value is the rest of a rounding."""


def ratio_table(title: str, found: Sequence[Ratio]) -> PlainTable:
    """Return a line for each figure."""
    unit = f"{found[0].unit}s"
    headings = ("figure", "better", "A", "B", "B / A", "B - A", "95 % interval", unit, "B is")
    spare = [unit, "better", "B - A", "A"]
    spare.insert(0 if all(_interval(each) == "-" for each in found) else len(spare), "95 % interval")
    table = PlainTable(title, headings, 2, spare)
    above = ""
    for each in found:
        merit = each.merit
        of, _, rule = merit.title.partition(", ")
        title, above = rule if of == above else merit.title, of
        values = (_figure(merit.factor * value, merit.digits) for value in (each.first, each.second))
        compared = (_number(each.ratio, 3), _figure(merit.factor * each.difference, merit.digits, "+"))
        table.add_line(title, merit.better, *values, *compared, _interval(each), each.count, each.verdict)
    table.caption = _meaning(found[0])
    return table


def _meaning(each: Ratio) -> str:
    """Return what the columns of a table mean."""
    first = "" if each.unit == "pair" else f"Means over {each.unit}s, each one the mean of its pairs. "
    return f'{first}"B is" rests on the interval: of B - A for scores, of B / A for all else'


def _figure(value: float, digits: int, sign: str = "") -> str:
    """Return a value with so many digits; with two that say something where they would all be 0."""
    text = f"{value:{sign},.{digits}f}"
    return text if abs(value) < _DUST or text.strip("+-0.") else f"{value:{sign}.2g}"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _interval(each: Ratio) -> str:
    """Return the interval that the verdict rests on."""
    if each.decided_by == "ratio":
        return "-" if math.isnan(each.low) else f"{each.low:.3f} to {each.high:.3f}"
    if math.isnan(each.half):
        return "-"
    factor, digits = each.merit.factor, each.merit.digits
    ends = (factor * (each.difference + half) for half in (-each.half, each.half))
    return " to ".join(_figure(end, digits, "+") for end in ends)


def _difference(each: Ratio) -> str:
    factor, digits = each.merit.factor, each.merit.digits
    half = "" if math.isnan(each.half) else f" ± {factor * each.half:,.{digits}f}"
    return f"{_figure(factor * each.difference, digits, '+')}{half}"


def case_table(cases: Sequence[CaseResult]) -> PlainTable:
    """Return a line for each case."""
    headings: tuple[str, ...] = (
        "dataset", "algorithm", "B is", "pairs", "judged by", "A", "B - A", "s/round B / A", "total s B / A",
    )  # fmt: skip
    if any(each.merit.name == "seconds_to_target" for case in cases for each in case.ratios):
        headings = (*headings, "s to target B / A")
    rows = [_case_row(case, len(headings)) for case in cases]
    table = PlainTable("By case", headings, 3, _SPARE_OF_CASES).with_lines(rows)
    if any("*" in cell for row in rows for cell in row[_FIRST_RATIO:]):
        table.caption = "*: not like for like, see above"
    return table


def _case_row(case: CaseResult, columns: int) -> list[str]:
    by_name = {each.merit.name: each for each in case.ratios}
    judged = case.pairs[0].first.metrics[0]
    found = by_name.get(judged.field())
    row = [case.dataset, case.algorithm, "INVALID" if case.invalid else "VALID", str(len(case.pairs))]
    row.append(judged.heading)
    row += ["-", "-"] if found is None else [judged.shown(found.first), _difference(found)]
    for name in _CASE_FIGURES:
        ratio = by_name.get(name)
        flag = "*" if ratio is not None and ratio.flagged else ""
        row.append("-" if ratio is None else f"{_number(ratio.ratio, 3)}{flag}")
    return row[:columns]
