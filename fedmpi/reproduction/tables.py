"""How the pages show values, and the published tables beside ours, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.names import algorithm_name, dataset_name
from fedmpi.analysis.rows import RULES
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import counts, in_words, refusal
from fedmpi.judging.spreads import LEVEL_OF_SPREADS
from fedmpi.metrics.metric import METRICS
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, HEADLINE, Compared
from fedmpi.reproduction.published import BY_CLIENT, CLUSTERING, GAINS
from fedmpi.reproduction.results import Cell, Key
from fedmpi.tables.markdown import markdown_of
from fedmpi.tables.table import NONE

_ASKED = {
    AS_PUBLISHED: "as the paper computes them",
    HEADLINE: "in the last round",
    BY_VALIDATION: "chosen by validation",
}
_HEADINGS = {
    AS_PUBLISHED: "reproduced?",
    HEADLINE: "holds in the last round?",
    BY_VALIDATION: "holds by validation?",
}

Columns = Mapping[str, Callable[[Compared], object]]
"""Headings, and what stands below them of a figure."""


def page_table(headings: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of values, each as `text` shows it."""
    return markdown_of(list(headings), [list(map(text, row)) for row in rows])


def pivot(
    corner: str, cells: Mapping[tuple[str, str], object], below: Iterable[Sequence[object]] = ()
) -> str:
    """Return values by row and column as a table, with further rows below it."""
    names, columns = (list(dict.fromkeys(place[axis] for place in cells)) for axis in (0, 1))
    rows = [[name, *(cells.get((name, column)) for column in columns)] for name in names]
    return page_table([corner, *columns], [*rows, *below])


def text(value: object) -> str:
    """Return a difference with its interval, another number to four digits; a dash where there is none."""
    if isinstance(value, Estimate):
        return NONE if math.isnan(value.mean) else value.signed
    if isinstance(value, float):
        return NONE if math.isnan(value) else f"{value:.4f}"
    return NONE if value is None else str(value)


def mean(estimate: Estimate | None) -> float | None:
    """Return a figure without its interval; None where there is none."""
    return None if estimate is None else estimate.mean


def method(key: Key) -> str:
    """Return what a method is called: its algorithm and its rounds."""
    return f"{algorithm_name(key.algorithm)}, {key.rounds} rounds"


def named(key: Key) -> tuple[str, str]:
    """Return what a configuration is called: dataset and method."""
    return dataset_name(key.dataset), method(key)


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the averages, a line per reading."""
    averages = [each for each in found if each.published.metric == "average"]
    lines = []
    for reading, members in grouped(averages, lambda each: each.published.reading).items():
        answers = "; ".join(f"{_ASKED[rule]}: {answered(members, rule)}" for rule in rules)
        what = f"Of {len(members)} published average accuracies"
        if reading:
            what = f"Read with {reading}: of {len(members)} of these"
        lines.append(f"- {what}, {answers}.\n")
    return "".join(lines) or "\n"


def selection_text(found: Sequence[Compared]) -> str:
    """Return what choosing by test data is worth, a line per method; empty where it is nothing."""
    worth: dict[str, list[str]] = {}
    for each in found:
        last, largest = each.ours[HEADLINE], each.ours[AS_PUBLISHED]
        if each.published.metric == "average" and last and largest and largest.mean > last.mean:
            points = f"{100 * (largest.mean - last.mean):.1f} on {each.published.column}"
            worth.setdefault(each.published.row, []).append(points)
    return "".join(
        f"- Choosing by test data, as published, adds to {name} in points: {', '.join(points)}.\n"
        for name, points in worth.items()
    )


def refused(found: Sequence[Compared]) -> str:
    """Return the word for figures of a table that ours surely are not."""
    return refusal("".join(each.published.unpublished for each in found))


def answered(found: Sequence[Compared], rule: str) -> str:
    """Return how many figures of a table hold under a rule, in words."""
    return in_words([each.judged[rule].corrected for each in found], refused(found))


def notes(found: Sequence[Compared]) -> list[str]:
    """Return the notes on the cells of a table; other readings have none."""
    cells = {each.published.cell: each.published for each in found if each.published.note}
    return [f"{each.row}, {each.column}: {each.note}." for each in cells.values() if not each.reading]


def figure_table(found: Sequence[Compared], columns: Columns, rules: Sequence[str]) -> str:
    """Return a line per figure: its place, `columns`, and for each rule the difference and the judgement."""
    headings = [words for rule in rules for words in (f"{rule} - paper", _HEADINGS[rule])]
    if any(each.published.metric in CLUSTERING for each in found):  # the same under every rule
        headings = ["ours - paper", "holds?"]
    rows = [
        [
            *(each.published.column, each.published.row, *(shown(each) for shown in columns.values())),
            *(value for rule in rules for value in (each.differences[rule], each.judged[rule])),
        ]
        for each in found
    ]
    return page_table(["column", "method", *columns, *headings], rows)


def gains_table(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return the smallest gains and ratios of a published table."""
    members = [each for each in found if each.published.metric in GAINS]
    by_rule = {rule: partial(_gain, rule) for rule in RULES}
    return figure_table(members, {"metric": lambda each: each.published.metric, **PAPER, **by_rule}, rules)


def _gain(rule: str, each: Compared) -> str | None:
    ours = each.ours[rule]
    if ours is None:
        return None
    if each.published.clients is not None:
        return measures.ratio(ours, each.published.clients)
    return f"{ours.mean + 0.0:+.4f} ({each.client[rule]})"


def _ours(rule: str, each: Compared) -> float | None:
    return mean(each.ours[rule])


PAPER: Columns = {"paper": lambda each: each.published.shown, "seeds": lambda each: len(each.cell.runs)}
OURS: Columns = {rule: partial(_ours, rule) for rule in RULES}
COLUMNS: Columns = {**PAPER, **OURS}


def constant(each: Compared) -> float:
    """Return what no learning scores by a figure's metric; NaN where that is not known."""
    published, by_client = each.published, each.published.metric in BY_CLIENT
    metric = published.score or METRICS.get(CLUSTERING.get(published.metric, ""))
    if metric is None or (not by_client and each.cell.column(metric, HEADLINE).startswith("score")):
        return _mean(each.cell, "constant_score")
    return _mean(each.cell, f"constant_{'client_' if by_client else ''}{metric.name}")


def _mean(cell: Cell, column: str) -> float:
    values = cell.values(column)
    return float(np.nanmean(values)) if values.size and not np.isnan(values).all() else math.nan


def spread_text(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return in which columns the spreads of methods are pooled, with the p-values; empty without means."""
    lines = []
    for rule in rules:
        alike = {each.published.column: each.alike[rule] for each in found}
        parts = []
        for words, pooled in (("each method's own", False), ("pooled", True)):
            of_these = [
                f"{name} ({p:.2g})"
                for name, p in alike.items()
                if not math.isnan(p) and (p > LEVEL_OF_SPREADS) == pooled
            ]
            parts += [f"{words} on {', '.join(of_these)}"] if of_these else []
        lines += [f"{rule.capitalize()}: {'; '.join(parts)}."] if parts else []
    return f"Spreads (Bartlett's p). {' '.join(lines)}\n" if lines else ""


def counts_table(found: Sequence[Compared]) -> str:
    """Return how many figures are in each state, with the correction and without."""
    word, rows = refused(found), []
    families = grouped(found, lambda each: (each.published.place, each.published.metric))
    for place, members in families.items():
        for rule in RULES:
            judged = [each.judged[rule] for each in members]
            corrected = counts([one.corrected for one in judged], word).values()
            no, yes, *_ = counts([one.plain for one in judged], word).values()
            rows.append([*place, rule, *corrected, f"{no} / {yes}"])
    headings = ["table", "metric", "rule", *counts([], word)]
    return page_table([*headings, f"without correction: {word} / confirmed"], rows)
