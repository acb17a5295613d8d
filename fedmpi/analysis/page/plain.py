"""The overview as Markdown and LaTeX, to paste into a text: a table for each headline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.entries import Entry, words
from fedmpi.analysis.page.cells import Setting, by_metric, direction, lines
from fedmpi.analysis.page.overview import COSTS, columns
from fedmpi.analysis.page.results import matrix
from fedmpi.analysis.page.settings import legend

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_TEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}
_MINUS = re.compile(r"^-(?=\d)")
_NOTHING = ("dataset", "algorithm", "rounds", "seeds")


@dataclass(frozen=True)
class _Table:
    """Headings, the rows of each setting, a note; the first `left` columns are text, the best may be bold."""

    headings: Sequence[str]
    settings: Sequence[Sequence[Sequence[Entry]]]
    note: str = ""
    left: int = 2
    bold: bool = False

    def is_bold(self, entry: Entry) -> bool:
        """Return whether an entry is the best of its column, and shown so."""
        return self.bold and "best" in entry.kind.split()


def markdown(settings: Sequence[Setting], *, by_dataset: bool = False) -> str:
    """Return a Markdown table for each headline, with an empty line between.

    Parameters
    ----------
    settings : sequence of Setting
    by_dataset : bool
        A row per algorithm and a column per dataset, the best in bold; else a row for both, with all figures.
    """
    return "\n".join(_markdown(table) for table in _tables(settings, by_dataset))


def _markdown(table: _Table) -> str:
    rule = "|" + "---|" * table.left + "---:|" * (len(table.headings) - table.left)
    rows = [row for each in table.settings for row in each]
    body = [f"| {' | '.join(_marked(table, entry) for entry in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(table.headings)} |", rule, *body, "", table.note, ""])


def _marked(table: _Table, entry: Entry) -> str:
    text = entry.text.replace("|", "/")
    return f"**{text}**" if table.is_bold(entry) else text


def latex(settings: Sequence[Setting], *, by_dataset: bool = False) -> str:
    """Return a LaTeX table for the package booktabs for each headline; parameters as of `markdown`."""
    return "\n".join(_latex(table) for table in _tables(settings, by_dataset))


def _latex(table: _Table) -> str:
    begin = f"\\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.headings) - table.left)}}}"
    text = [begin, "\\toprule", _tex_row(table, [words(each) for each in table.headings]), "\\midrule"]
    for place, rows in enumerate(table.settings):
        text += ["\\midrule"] if place else []
        text += [_tex_row(table, row) for row in rows]
    return "\n".join([*text, "\\bottomrule", "\\end{tabular}", f"% {table.note}", ""])


def _tex_row(table: _Table, row: Sequence[Entry]) -> str:
    return f"{' & '.join(_tex(table, entry) for entry in row)} \\\\"


def _tex(table: _Table, entry: Entry) -> str:
    escaped = "".join(_TEX.get(letter, letter) for letter in _MINUS.sub("\N{MINUS SIGN}", entry.text))
    text = escaped.replace("\N{MINUS SIGN}", "$-$")
    return f"\\textbf{{{text}}}" if table.is_bold(entry) else text


def _tables(settings: Sequence[Setting], by_dataset: bool) -> list[_Table]:
    made = [_matrix(alike) if by_dataset else _table(alike) for alike in by_metric(settings)]
    return made or [_Table(_NOTHING, [])]


def _matrix(settings: Sequence[Setting]) -> _Table:
    listed, labels = matrix(settings)
    rows = [[each.entry(label) for each in listed] for label in labels]
    metric = settings[0].metric
    label = metric.label(unit=True)
    about = f"{label[0].upper()}{label[1:]} in the last round, {direction(metric)}"
    note = (
        f"{about}: mean over seeds ± 95 % interval. Bold: the best of a dataset; of equal ones the reference."
    )
    note = " ".join([note, *_said(settings)])
    return _Table([each.heading for each in listed], [rows], note, left=1, bold=True)


def _table(settings: Sequence[Setting]) -> _Table:
    chosen = [each for each in columns(settings) if each.pasted]
    rows = [[[each.entry(line) for each in chosen] for line in lines([one])] for one in settings]
    metric, costs = settings[0].metric, {each.heading for each in COSTS}
    meanings = "; ".join(
        f"{each.heading}: {each.meaning}" for each in chosen if each.meaning and each.heading not in costs
    )
    note = " ".join([f"By {metric.title}, {direction(metric)}. Columns: {meanings}.", *_said(settings)])
    return _Table([each.heading for each in chosen], rows, note)


def _said(settings: Sequence[Setting]) -> list[str]:
    return [f"{line[0].upper()}{line[1:]}." for line in legend(settings)]
