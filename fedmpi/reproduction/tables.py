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
from fedmpi.judging.judgement import CONFIRMED, NOT_REACHED, REFUTED, counts, in_words, refusal
from fedmpi.judging.spreads import LEVEL_OF_SPREADS
from fedmpi.metrics.metric import METRICS
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import Compared
from fedmpi.reproduction.published import AS_PUBLISHED, BY_CLIENT, BY_VALIDATION, CLUSTERING, GAINS, HEADLINE
from fedmpi.reproduction.results import Cell, Key
from fedmpi.tables.table import NONE
from fedmpi.tables.texts import markdown_of

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

_EQUAL = 1e-9
"""Scores that differ by less are the same share of right predictions."""

_MARKS = {CONFIRMED: " ✓", REFUTED: " ✗", NOT_REACHED: " ✗"}

_CONSTANTS = {
    "average": "each client's most frequent class of training (average accuracy)",
    **dict.fromkeys(CLUSTERING, "one cluster with all graphs (clustering accuracy, macro F1)"),
    "ROC-AUC": "0.5 whatever it is (ROC-AUC)",
    "micro F1": "the most frequent class of all clients' training nodes (micro F1)",
    **dict.fromkeys(("RMSE", "MAE"), "the mean training label (errors)"),
}
"""What a constant prediction is, by metric."""

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


def grids(found: Sequence[Compared], rules: Sequence[str]) -> list[tuple[str, str]]:
    """Return a grid for each metric of a table, with the metric's name; gains over self-train have none.

    Parameters
    ----------
    found : sequence of Compared
        Of one table.
    rules : sequence of str
        Selection rules that are shown, in this order.
    """
    families = grouped(found, lambda each: each.published.metric)
    return [(metric, _grid(members, rules)) for metric, members in families.items() if metric not in GAINS]


def at_constant(found: Sequence[Compared]) -> str:
    """Return how many clients score no more than a constant prediction; "" where it is not known.

    In the last round, of all clients and runs of a cell.
    """
    members = [each for each in found if each.published.metric == "average"]
    cells = {(each.published.row, each.published.column): _at_constant(each) for each in members}
    return pivot("method", cells) if any(cells.values()) else ""


def _at_constant(each: Compared) -> str | None:
    known, scores = (each.cell.values(column) for column in ("constant_score", RULES[HEADLINE]))
    count = int(np.isfinite(known).sum())
    return f"{int((scores <= known + _EQUAL).sum())} of {count}" if count else None


def legend(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what a cell of the grids says, and what a constant prediction is."""
    ours = " / ".join(rules)
    text = f"Each cell: paper → ours, {ours}. ✓: confirmed. ✗: {refused(found)}. Without a mark: undecided."
    metrics = dict.fromkeys(each.published.metric for each in found if not math.isnan(constant(each)))
    said = list(dict.fromkeys(_CONSTANTS[metric] for metric in metrics if metric in _CONSTANTS))
    return f"{text}\n*Constant prediction*, which takes no training: {'; '.join(said)}." if said else text


def _grid(members: Sequence[Compared], rules: Sequence[str]) -> str:
    cells = {(each.published.row, each.published.column): each for each in members}
    columns = grouped(cells.values(), lambda each: each.published.column).values()
    constants = [_constant([each for each in column if each.cell.runs]) for column in columns]
    runs = [sorted(len(each.cell.runs) for each in column) for column in columns]
    below = [["*constant prediction*", *constants]] if any(constants) else []
    below.append(["*runs*", *(f"*{_span(list(map(str, counts)))}*" for counts in runs)])
    return pivot("method", {place: _cell(each, rules) for place, each in cells.items()}, below)


def _constant(members: Sequence[Compared]) -> str | None:
    """Return what a constant prediction scores in a column, if known; a span where methods differ.

    It is taken of those with the most runs. Centralised training has one client, so its own is another one.
    """
    federated = [each for each in members if "centralised" not in each.published.row]
    most = max((len(each.cell.runs) for each in federated), default=0)
    found = [constant(each) for each in federated if len(each.cell.runs) == most]
    return _span(sorted(f"{each:.3f}" for each in found if not math.isnan(each)))


def _cell(each: Compared, rules: Sequence[str]) -> str:
    published = each.published
    printed = published.value if math.isnan(published.number) else f"{published.number:.3f}"
    ours = " / ".join(_marked(each, rule) for rule in rules) if each.cell.runs else "-"
    return f"{printed} → {ours}"


def _marked(each: Compared, rule: str) -> str:
    one = each.ours[rule]
    return "-" if one is None else f"{one.mean:.3f}{_MARKS.get(each.judged[rule].corrected, '')}"


def _span(texts: Sequence[str]) -> str | None:
    """Return the first and the last of sorted texts, or what both are."""
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else None
