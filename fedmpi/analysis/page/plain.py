"""The overview as Markdown and LaTeX, to paste into a text: a table for each headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.page.cells import Setting, by_metric, direction, lines
from fedmpi.analysis.page.overview import COSTS, columns
from fedmpi.analysis.page.settings import legend

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}
_NOTHING = ("dataset", "algorithm", "rounds", "seeds")


@dataclass(frozen=True)
class _Table:
    """Headings, the rows of each setting, and a note."""

    headings: Sequence[str]
    settings: Sequence[Sequence[Sequence[str]]]
    note: str = ""


def markdown(settings: Sequence[Setting]) -> str:
    """Return a Markdown table for each headline, with an empty line between."""
    return "\n".join(_markdown(table) for table in _tables(settings))


def _markdown(table: _Table) -> str:
    head = [f"| {' | '.join(table.headings)} |", "|---|---|" + "---:|" * (len(table.headings) - 2)]
    rows = [row for each in table.settings for row in each]
    body = [f"| {' | '.join(text.replace('|', '/') for text in row)} |" for row in rows]
    return "\n".join([*head, *body, "", table.note, ""])


def latex(settings: Sequence[Setting]) -> str:
    """Return a LaTeX table for the package booktabs for each headline."""
    return "\n".join(_latex(table) for table in _tables(settings))


def _latex(table: _Table) -> str:
    begin = f"\\begin{{tabular}}{{ll{'r' * (len(table.headings) - 2)}}}"
    text = [begin, "\\toprule", _tex_row(table.headings), "\\midrule"]
    for place, rows in enumerate(table.settings):
        text += ["\\midrule"] if place else []
        text += [_tex_row(row) for row in rows]
    return "\n".join([*text, "\\bottomrule", "\\end{tabular}", f"% {table.note}", ""])


def _tex_row(cells: Sequence[str]) -> str:
    escaped = ("".join(_TEX.get(letter, letter) for letter in text) for text in cells)
    return f"{' & '.join(escaped)} \\\\"


def _tables(settings: Sequence[Setting]) -> list[_Table]:
    return [_table(alike) for alike in by_metric(settings)] or [_Table(_NOTHING, [])]


def _table(settings: Sequence[Setting]) -> _Table:
    chosen = [each for each in columns(settings) if each.pasted]
    rows = [[[each.entry(line).text for each in chosen] for line in lines([one])] for one in settings]
    metric, costs = settings[0].metric, {each.heading for each in COSTS}
    meanings = "; ".join(
        f"{each.heading}: {each.meaning}" for each in chosen if each.meaning and each.heading not in costs
    )
    note = f"By {metric.title}, {direction(metric)}. Columns: {meanings}."
    note = " ".join([note, *(f"{line[0].upper()}{line[1:]}." for line in legend(settings))])
    return _Table([each.heading for each in chosen], rows, note)
