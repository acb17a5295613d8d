"""The overview by dataset and algorithm as Markdown and LaTeX, to paste into a text.

Runs that are judged by ROC-AUC or RMSE stand in a table of their own, and so do unsupervised ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.estimates import Estimate
from fedmpi.analysis.page.accuracy import mean_over_seeds
from fedmpi.analysis.page.clusters import ACCURACY, F1, PROBE, majority, score
from fedmpi.analysis.page.collect import BEST, LAST, PUBLISHED
from fedmpi.analysis.page.scores import direction, over_seeds
from fedmpi.analysis.page.settings import Cell, Setting

_FIRST = ("dataset", "algorithm", "rounds", "seeds")
_LAST = ("s/round", "total s")
_ACCURACIES = ("test accuracy %, last round", "best by validation", "as published", "worst client")
_SCORES = ("score", "last round", "best by validation", "as published", "constant")
_CLUSTERS = {
    ACCURACY: "clustering accuracy %, last round",
    F1: "macro F1 %",
    PROBE: "probe %",
}
_NOTE_ON_ACCURACIES = (
    "Mean over clients and seeds ± 95 % interval over seeds (Student's t). As published: a maximum over test "
    "accuracies at splits, chosen on test data."
)
_NOTE_ON_CLUSTERS = (
    "Clusters of all clients' graphs, matched to classes: mean over seeds ± 95 % interval. Largest class: "
    "what one cluster for all graphs would score."
)
_NOTE_ON_SCORES = (
    "Over all clients' test graphs together; mean over seeds ± 95 % interval (Student's t). As published: "
    "the best test score of any round, chosen on test data. Constant: of a prediction that is the same for "
    "every graph."
)
_NONE = "-"
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


@dataclass(frozen=True)
class _Table:
    """Headings, the rows of each setting, and a note."""

    headings: tuple[str, ...]
    settings: list[list[list[str]]]
    note: str


def markdown(settings: Sequence[Setting]) -> str:
    """Return a Markdown table, or two with an empty line between."""
    return "\n".join(_markdown(table) for table in _tables(settings))


def _markdown(table: _Table) -> str:
    count = len(table.headings)
    lines = [f"| {' | '.join(table.headings)} |", "|---|---|" + "---:|" * (count - 2)]
    rows = [row for each in table.settings for row in each]
    lines += [f"| {' | '.join(text.replace('|', '/') for text in row)} |" for row in rows]
    return "\n".join([*lines, "", table.note, ""])


def latex(settings: Sequence[Setting]) -> str:
    """Return a LaTeX table for the package booktabs, or two."""
    return "\n".join(_latex(table) for table in _tables(settings))


def _latex(table: _Table) -> str:
    lines = [
        f"\\begin{{tabular}}{{ll{'r' * (len(table.headings) - 2)}}}",
        "\\toprule",
        _tex_row(table.headings),
        "\\midrule",
    ]
    for place, rows in enumerate(table.settings):
        lines += ["\\midrule"] if place else []
        lines += [_tex_row(row) for row in rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", f"% {table.note}", ""])


def _tex_row(cells: Sequence[str]) -> str:
    escaped = ("".join(_TEX.get(letter, letter) for letter in text) for text in cells)
    return f"{' & '.join(escaped)} \\\\"


def _tables(settings: Sequence[Setting]) -> list[_Table]:
    """Return the tables of accuracies, scores and clusters, as far as there are runs for them."""
    scored = [each for each in settings if each.score is not None]
    clustered = [each for each in settings if each.clustered]
    by_accuracy = [each for each in settings if each.score is None and not each.clustered]
    found = []
    if by_accuracy or not settings:
        rows = [[_row(each, cell, _accuracies(cell)) for cell in each.cells] for each in by_accuracy]
        found.append(_filled((*_FIRST, *_ACCURACIES, *_LAST), rows, _NOTE_ON_ACCURACIES))
    if scored:
        rows = [[_row(each, cell, _scores(each, cell)) for cell in each.cells] for each in scored]
        found.append(_Table((*_FIRST, *_SCORES, *_LAST), rows, _NOTE_ON_SCORES))
    if clustered:
        rows = [[_row(each, cell, _clusters(each, cell)) for cell in each.cells] for each in clustered]
        headings = ("dataset", "method", *_FIRST[2:], *_CLUSTERS.values(), "largest class %", *_LAST)
        found.append(_filled(headings, rows, _NOTE_ON_CLUSTERS))
    return found


def _filled(headings: Sequence[str], settings: Sequence[list[list[str]]], note: str) -> _Table:
    """Return a table without those columns in which no run has anything."""
    rows = [row for each in settings for row in each]
    kept = [place for place in range(len(headings)) if not rows or any(row[place] != _NONE for row in rows)]
    chosen = [[[row[place] for place in kept] for row in each] for each in settings]
    return _Table(tuple(headings[place] for place in kept), chosen, note)


def _row(each: Setting, cell: Cell, figures: Sequence[str]) -> list[str]:
    return [
        each.heading,
        cell.label,
        str(cell.config["rounds"]),
        str(len(cell.runs)),
        *figures,
        f"{cell.mean('round_seconds_median'):.3f}",
        f"{cell.mean('total_seconds'):.1f}",
    ]


def _accuracies(cell: Cell) -> list[str]:
    return [
        *(_shown(mean_over_seeds(cell, rule)) for rule in (LAST, BEST, PUBLISHED)),
        _shown(Estimate(cell.mean("worst_client_accuracy"), math.nan, len(cell.runs))),
    ]


def _clusters(each: Setting, cell: Cell) -> list[str]:
    largest = Estimate(majority(each), math.nan, len(cell.runs))
    return [_shown(found) for found in (*(score(cell, name) for name in _CLUSTERS), largest)]


def _scores(each: Setting, cell: Cell) -> list[str]:
    rules = ("", "_best_by_validation", "_as_published")
    found = [over_seeds(cell, f"test_score{rule}") for rule in rules]
    constant = Estimate(cell.mean("test_score_constant"), math.nan, len(cell.runs))
    return [
        f"{each.score}, {direction(each.higher)}",
        *(_shown(value, 1.0, 4) for value in (*found, constant)),
    ]


def _shown(found: Estimate, factor: float = 100.0, digits: int = 2) -> str:
    if math.isnan(found.mean):
        return _NONE
    interval = "" if math.isnan(found.half) else f" ± {factor * found.half:.{digits}f}"
    return f"{factor * found.mean:.{digits}f}{interval}"
