"""Tables to paste into a text, one for each headline: that of a paper, or chosen columns of the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from fedmpi.analysis.page.cells import Line, Setting, by_metric, direction, lines
from fedmpi.analysis.page.overview import COSTS, NAMES, columns, leads
from fedmpi.analysis.page.results import matrix
from fedmpi.analysis.page.settings import legend
from fedmpi.analysis.scores import LAST
from fedmpi.errors import BadInput
from fedmpi.tables.table import Column, Entry, Table, listed

ALL, PAPER = "all", "paper"
"""What stands for all columns that are meant to be pasted, and for the table of a paper."""
_NOTHING = ("dataset", "algorithm", "rounds", "seeds")


def pasted(settings: Sequence[Setting], chosen: str) -> list[Table[Any]]:
    """Return a table for each headline; without settings one with headings alone.

    Parameters
    ----------
    settings : sequence of Setting
    chosen : str
        `PAPER`: a row per algorithm, of several datasets a column for each. `ALL`: a row per dataset and
        algorithm with all figures. Else beginnings of the headings of the overview, with commas.

    Raises
    ------
    BadInput
        No table has a column of such a heading.
    """
    groups = by_metric(settings)
    if not groups:
        return [Table(listed(_NOTHING), [])]
    if chosen == PAPER:
        return [_matrix(each) if len(each) > 1 else _methods(each) for each in groups]
    return [_table(each, _chosen(each, groups, chosen)) for each in groups]


def _matrix(settings: Sequence[Setting]) -> Table[str]:
    return Table(*matrix(settings), notes=[_note(settings, "Bold: the best of a dataset")])


def _methods(settings: Sequence[Setting]) -> Table[Line]:
    """Return a row per algorithm of one dataset: the headline, the best in bold, and leads, those decided."""
    last = next(each for each in columns(settings) if each.heading.endswith(f", {LAST}"))
    lead = [_decided(each) for each in leads(settings)[:1]]
    best = "Bold: the best" + " and leads that are decided" * bool(lead)
    return Table([NAMES[1], last, *lead], lines(settings), notes=[_note(settings, best)])


def _decided(lead: Column[Line]) -> Column[Line]:
    """Return the column of leads, those decided as better in bold."""

    def value(line: Line) -> Entry:
        found = line[0].lead(line[1])
        better = found is not None and found.verdict == "better"
        return replace(lead.entry(line), kind="best" if better else "")

    return replace(lead, value=value)


def _note(settings: Sequence[Setting], bold: str) -> str:
    metric = settings[0].metric
    label, of = metric.label(unit=True), "" if len(settings) > 1 else f" on {settings[0].heading}"
    about = f"{label[0].upper()}{label[1:]} in the last round{of}, {direction(metric)}"
    means = f"{about}: mean over seeds ± 95 % interval. {bold}; of equal ones the reference."
    return " ".join([means, *_said(settings)])


def _table(settings: Sequence[Setting], chosen: Sequence[Column[Line]]) -> Table[Line]:
    metric, costs = settings[0].metric, {each.heading for each in COSTS}
    explained = [each for each in chosen if each.meaning and each.heading not in costs]
    meanings = "; ".join(f"{each.heading}: {each.meaning}" for each in explained)
    told = [f"Columns: {meanings}."] if explained else []
    note = " ".join([f"By {metric.title}, {direction(metric)}. Bold: the best.", *told, *_said(settings)])
    starts = accumulate(len(each.cells) for each in settings[:-1])
    return Table(chosen, lines(settings), notes=[note], ruled=list(starts))


def _chosen(
    settings: Sequence[Setting], groups: Sequence[Sequence[Setting]], names: str
) -> list[Column[Line]]:
    every = columns(settings)
    if names == ALL:
        return [each for each in every if each.pasted]
    asked = [name.strip() for name in names.split(",")]
    known = list(dict.fromkeys(each.heading for group in groups for each in columns(group)))
    for name in asked:
        if not any(heading.startswith(name) for heading in known):
            raise BadInput(f"--columns: no {name!r}; there are {'; '.join(known)}; or {ALL}, or {PAPER}")
    return [each for name in asked for each in every if each.heading.startswith(name)]


def _said(settings: Sequence[Setting]) -> list[str]:
    return [f"{line[0].upper()}{line[1:]}." for line in legend(settings)]
