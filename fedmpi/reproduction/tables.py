"""The published tables beside ours, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.names import algorithm_name
from fedmpi.analysis.rows import RULES
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import counts, in_words, refusal
from fedmpi.judging.spreads import LEVEL_OF_SPREADS
from fedmpi.metrics.metric import METRICS
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, HEADLINE, Compared
from fedmpi.reproduction.published import BY_CLIENT, CLUSTERING, GAINS
from fedmpi.reproduction.results import Cell, Key
from fedmpi.tables.markdown import markdown_of

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


def number(estimate: Estimate | None) -> str:
    """Return a figure without its interval; "-" where there is none."""
    return "-" if estimate is None else f"{estimate.mean:.4f}"


def signed(estimate: Estimate | None) -> str:
    """Return a difference with its interval; "-" where there is none."""
    return "-" if estimate is None else estimate.signed


def method(key: Key) -> str:
    """Return what a method is called: its algorithm and its rounds."""
    return f"{algorithm_name(key.algorithm)}, {key.rounds} rounds"


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the averages, a line per reading."""
    averages = [each for each in found if each.published.metric == "average"]
    lines = []
    for reading, members in grouped(averages, lambda each: each.published.reading).items():
        answers = "; ".join(f"{_ASKED[rule]}: {answered(members, rule)}" for rule in rules)
        what = f"Of {len(members)} published average accuracies"
        lines.append(
            f"- {f'Read with {reading}: of {len(members)} of these' if reading else what}, {answers}."
        )
    return "\n".join(lines) + "\n"


def selection_text(found: Sequence[Compared]) -> str:
    """Return what choosing by test data is worth, a line per method; empty where it is nothing."""
    averages = [each for each in found if each.published.metric == "average"]
    worth: dict[str, list[str]] = {}
    for each in averages:
        last, largest = each.ours[HEADLINE], each.ours[AS_PUBLISHED]
        if last is not None and largest is not None and largest.mean > last.mean:
            points = f"{100 * (largest.mean - last.mean):.1f} on {each.published.column}"
            worth.setdefault(each.published.row, []).append(points)
    return "".join(
        f"- Choosing by test data, as published, adds to {name} in points: {', '.join(points)}.\n"
        for name, points in worth.items()
    )


def refused(found: Sequence[Compared]) -> str:
    """Return the word for figures of a table that ours surely are not."""
    return refusal(next((each.published.unpublished for each in found if each.published.unpublished), ""))


def answered(found: Sequence[Compared], rule: str) -> str:
    """Return how many figures of a table hold under a rule, in words."""
    return in_words([each.judged[rule].corrected for each in found], refused(found))


def parts(found: Sequence[Compared], columns: Columns, rules: Sequence[str]) -> dict[str, Any]:
    """Return a published table's name and suite, and by metric our figures and how they deviate.

    Parameters
    ----------
    found : sequence of Compared
        Of one table.
    columns : mapping
        What stands between place and judgements, see `figure_table`.
    rules : sequence of str
    """
    by_metric = grouped(found, lambda each: each.published.metric)
    metrics = [
        {
            "name": metric,
            "figures": figure_table(members, columns, rules),
            "spreads": spread_text(members, rules),
        }
        for metric, members in by_metric.items()
        if metric not in GAINS
    ]
    first = found[0].published
    return {"name": first.place, "suite": first.suite, "metrics": metrics, "notes": notes(found)}


def notes(found: Sequence[Compared]) -> list[str]:
    """Return the notes on the cells of a table; other readings have none."""
    cells = {each.published.cell: each.published for each in found if each.published.note}
    return [f"{each.row}, {each.column}: {each.note}." for each in cells.values() if not each.reading]


Columns = Mapping[str, Callable[[Compared], str]]
"""Headings, and what stands below them of a figure."""


def figure_table(found: Sequence[Compared], columns: Columns, rules: Sequence[str]) -> str:
    """Return a line per figure: its place, `columns`, and for each rule the difference and the judgement."""
    columns = {
        "column": lambda each: each.published.column,
        "method": lambda each: each.published.row,
        **columns,
    }
    headings = [text for rule in rules for text in (f"{rule} - paper", _HEADINGS[rule])]
    if any(each.published.metric in CLUSTERING for each in found):  # the same under every rule
        headings = ["ours - paper", "holds?"]
    rows = []
    for each in found:
        judged = [text for rule in rules for text in (signed(each.differences[rule]), str(each.judged[rule]))]
        rows.append([*(shown(each) for shown in columns.values()), *judged])
    return markdown_of([*columns, *headings], rows)


def by_rule(shown: Callable[[Compared, str], str]) -> Columns:
    """Return a column per selection rule."""
    return {rule: partial(_under, shown, rule) for rule in RULES}


def _under(shown: Callable[[Compared, str], str], rule: str, each: Compared) -> str:
    return shown(each, rule)


def _ours(each: Compared, rule: str) -> str:
    return number(each.ours[rule])


PAPER: Columns = {"paper": lambda each: each.published.shown, "seeds": lambda each: str(len(each.cell.runs))}
OURS = by_rule(_ours)
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
        columns = {
            each.published.column: each.alike[rule] for each in found if not math.isnan(each.alike[rule])
        }
        own = [f"{name} ({p:.2g})" for name, p in columns.items() if p <= LEVEL_OF_SPREADS]
        pooled = [f"{name} ({p:.2g})" for name, p in columns.items() if p > LEVEL_OF_SPREADS]
        parts = [("each method's own", own), ("pooled", pooled)]
        text = "; ".join(f"{word} on {', '.join(names)}" for word, names in parts if names)
        if text:
            lines.append(f"{rule.capitalize()}: {text}.")
    return f"Spreads (Bartlett's p). {' '.join(lines)}\n" if lines else ""


def counts_table(found: Sequence[Compared]) -> str:
    """Return how many figures are in each state, with the correction and without."""
    rows = []
    word = refused(found)
    families = grouped(found, lambda each: (each.published.place, each.published.metric))
    for (table, metric), members in families.items():
        for rule in RULES:
            answers = [each.judged[rule] for each in members]
            corrected, alone = (
                list(counts([getattr(one, name) for one in answers], word).values())
                for name in ("corrected", "plain")
            )
            rows.append([table, metric, rule, *map(str, corrected), " / ".join(map(str, alone[:2]))])
    headings = ["table", "metric", "rule", *counts([], word)]
    return markdown_of([*headings, f"without correction: {word} / confirmed"], rows)


def gains_table(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return the smallest gains and ratios of a published table."""
    members = [each for each in found if each.published.metric in GAINS]
    return figure_table(
        members, {"metric": lambda each: each.published.metric, **PAPER, **by_rule(_gain)}, rules
    )


def _gain(each: Compared, rule: str) -> str:
    ours = each.ours[rule]
    if ours is None:
        return "-"
    if each.published.clients is not None:
        return f"{round(ours.mean * each.published.clients)}/{each.published.clients}"
    return f"{ours.mean + 0.0:+.4f} ({each.client[rule]})"
