"""A table as text to paste: Markdown, and LaTeX for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fedmpi.tables.table import Entry, Table, listed
from fedmpi.visible import visible

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"} | {"\N{MINUS SIGN}": "$-$"}
_MINUS = re.compile(r"^-(?=\d)")


def markdown(table: Table[Any]) -> str:
    """Return a table, the best of a column in bold; notes below it, after an empty line."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    body = [line(_cells(row, _in_cell, "**{}**")) for row in table.entries]
    notes = ["", *map(visible, table.notes)] if table.notes else []
    return "\n".join([line(map(_in_cell, table.headings)), line(rules), *body, *notes, ""])


def markdown_of(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of values under headings."""
    return markdown(Table(listed(headings), list(rows)))


def _in_cell(text: str) -> str:
    """Return a text in one line, without what ends a cell."""
    return visible(text).replace("|", "\\|")


def latex(table: Table[Any]) -> str:
    """Return a table, the best of a column in bold; notes are comments below it."""

    def line(cells: Iterable[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    aligned = "".join("r" if numeric else "l" for numeric in table.numeric)
    lines = [f"\\begin{{tabular}}{{{aligned}}}", "\\toprule", line(map(_escaped, table.headings))]
    for place, row in enumerate(table.entries):
        lines += ["\\midrule"] if place == 0 or place in table.ruled else []
        lines.append(line(_cells(row, _escaped, "\\textbf{{{}}}")))
    notes = [f"% {visible(note)}" for note in table.notes]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", *notes, ""])


def _escaped(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in _MINUS.sub("\N{MINUS SIGN}", visible(text)))


def _cells(row: Iterable[Entry], safe: Callable[[str], str], bold: str) -> list[str]:
    return [bold.format(safe(each.text)) if "best" in each.kind.split() else safe(each.text) for each in row]
