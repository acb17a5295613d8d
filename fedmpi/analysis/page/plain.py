"""The overview by dataset and algorithm as Markdown and LaTeX, to paste into a text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.analysis.estimates import Estimate
from fedmpi.analysis.page.accuracy import mean_over_seeds
from fedmpi.analysis.page.collect import BEST, LAST, PUBLISHED, Cell, Setting

_HEADINGS = (
    "dataset",
    "algorithm",
    "rounds",
    "seeds",
    "test accuracy %, last round",
    "best by validation",
    "as published",
    "worst client",
    "s/round",
    "total s",
)
_NOTE = (
    "Mean over clients and seeds ± 95 % interval over seeds (Student's t). As published: a maximum over test "
    "accuracies at splits, chosen on test data."
)
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


def markdown(settings: Sequence[Setting]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(_HEADINGS)} |", "|---|---|" + "---:|" * (len(_HEADINGS) - 2)]
    lines += [f"| {' | '.join(text.replace('|', '/') for text in row)} |" for row in _rows(settings)]
    return "\n".join([*lines, "", _NOTE, ""])


def latex(settings: Sequence[Setting]) -> str:
    """Return a LaTeX table for the package booktabs."""
    lines = [
        f"\\begin{{tabular}}{{ll{'r' * (len(_HEADINGS) - 2)}}}",
        "\\toprule",
        _tex_row(_HEADINGS),
        "\\midrule",
    ]
    for place, each in enumerate(settings):
        lines += ["\\midrule"] if place else []
        lines += [_tex_row(row) for row in _rows([each])]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", f"% {_NOTE}", ""])


def _tex_row(cells: Sequence[str]) -> str:
    escaped = ("".join(_TEX.get(letter, letter) for letter in text) for text in cells)
    return f"{' & '.join(escaped)} \\\\"


def _rows(settings: Sequence[Setting]) -> list[list[str]]:
    return [_row(each, cell) for each in settings for cell in each.cells]


def _row(each: Setting, cell: Cell) -> list[str]:
    accuracies = [_percent(mean_over_seeds(cell, rule)) for rule in (LAST, BEST, PUBLISHED)]
    return [
        each.heading,
        cell.label,
        str(cell.config["rounds"]),
        str(len(cell.runs)),
        *accuracies,
        f"{100 * cell.mean('worst_client_accuracy'):.2f}",
        f"{cell.mean('round_seconds_median'):.3f}",
        f"{cell.mean('total_seconds'):.1f}",
    ]


def _percent(found: Estimate) -> str:
    interval = "" if math.isnan(found.half) else f" ± {100 * found.half:.2f}"
    return f"{100 * found.mean:.2f}{interval}"
