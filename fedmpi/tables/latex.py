"""A table as LaTeX, for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fedmpi.tables.table import Entry, Table
from fedmpi.visible import visible

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"} | {"\N{MINUS SIGN}": "$-$"}
_MINUS = re.compile(r"^-(?=\d)")


def latex(table: Table[Any]) -> str:
    """Return a table, the best of a column in bold; notes are comments below it."""
    aligned = "".join("r" if numeric else "l" for numeric in table.numeric)
    lines = [f"\\begin{{tabular}}{{{aligned}}}", "\\toprule", _line(map(_escaped, table.headings))]
    for place, row in enumerate(table.entries):
        lines += ["\\midrule"] if place == 0 or place in table.ruled else []
        lines.append(_line(map(_cell, row)))
    notes = [f"% {visible(note)}" for note in table.notes]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", *notes, ""])


def _line(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(entry: Entry) -> str:
    text = _escaped(entry.text)
    return f"\\textbf{{{text}}}" if "best" in entry.kind.split() else text


def _escaped(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in _MINUS.sub("\N{MINUS SIGN}", visible(text)))
