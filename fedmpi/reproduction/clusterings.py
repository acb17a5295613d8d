"""Published scores of clusters beside ours, as Markdown: mean, spread and range over repetitions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from fedmpi.analysis.cells import grouped
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import Judgement, Question, in_words, judge
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import HEADLINE, MARGIN, Compared
from fedmpi.reproduction.published import CLUSTERING, Published
from fedmpi.reproduction.results import Cell, Results
from fedmpi.reproduction.tables import OURS, PAPER, Columns, answered, pivot, refused, text


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the published scores and leads, a line per reading and metric."""
    lines = []
    readings = grouped(found, lambda each: each.published.reading)
    for reading, metric in product(readings, CLUSTERING):
        members = [each for each in readings[reading] if each.published.metric == metric]
        of_tables = grouped(members, lambda each: each.published.table)
        said = f"of {len(members)} published figures {answered(members, rules[0])}"
        leads = [each.judged.corrected for table in of_tables.values() for each in leads_of(table)]
        if leads:
            leading = in_words(leads, refused(members))
            said += f"; of {len(leads)} leads of {members[0].published.paper} {leading}"
        title = f"{' and '.join(of_tables)}{f', {reading}' if reading else ''}"
        lines.append(f"- {title}, {metric}: {said}.\n")
    return "".join(lines)


def settings_table(results: Results, suite: str) -> str:
    """Return what other settings score: a line per setting, a column per dataset; empty if none was run.

    Parameters
    ----------
    suite : str
        Its cases are called after seed, dataset and setting, parted by hyphens, in any order.
    """
    found = {}
    for key, repetitions in results.plan(suite).items():
        name = next(iter(repetitions.values()))
        parts = [part for part in name.split("-") if part != key.dataset and not _SEED.fullmatch(part)]
        cell = results.cell(key, repetitions)
        if cell.runs:  # what a hyphen within a number has parted is put together again
            setting = re.sub(r"(\de) (\d)", r"\1-\2", " ".join(parts))
            found[setting, key.dataset] = _scores(cell)
    return pivot("setting", found) if found else ""


_SEED = re.compile(r"seed\d+")


def _scores(cell: Cell) -> str:
    """Return mean accuracy and macro F1 in percent, and over how many repetitions where it is one."""
    accuracy, f1 = (100 * cell.values(name).mean() for name in CLUSTERING.values())
    return f"{accuracy:.1f}, {f1:.1f}{'' if len(cell.runs) > 1 else ' (one)'}"


@dataclass(frozen=True)
class Lead:
    """The lead of a paper's own method over another one: as published, ours, and whether it holds."""

    over: Published
    published: float
    ours: Estimate | None
    judged: Judgement


def lead_table(found: Sequence[Compared]) -> str:
    """Return the leads of `leads_of` as a table; empty where there are none."""
    leads = {
        (f"{each.over.paper} over {each.over.row}", each.over.column): "; ".join(
            (f"{each.published:+.4f}", text(each.ours), str(each.judged))
        )
        for each in leads_of(found)
    }
    return pivot("published; ours; holds?", leads) if leads else ""


def leads_of(found: Sequence[Compared]) -> list[Lead]:
    """Return the leads of the paper's own method, paired by repetition; none where it is not there.

    Parameters
    ----------
    found : sequence of Compared
        The figures of one metric of one table: a family of judgements. The paper's method has its name.
    """
    own = {each.published.column: each for each in found if each.published.row == each.published.paper}
    others = [each for each in found if own and each.published.row != each.published.paper]
    leads = []
    for each in others:
        mine, metric = own[each.published.column], CLUSTERING[each.published.metric]
        lead = mine.published.value - each.published.value
        leads.append((each.published, lead, measures.lead(mine.cell, each.cell, metric)))
    questions = [
        Question(ours, lead - MARGIN, math.inf, published.unpublished) for published, lead, ours in leads
    ]
    return [Lead(*each, judged) for each, judged in zip(leads, judge(questions), strict=True)]


def _std(each: Compared) -> float | None:
    ours = each.ours[HEADLINE]
    return ours.std if ours is not None and ours.freedom else None


def _range(each: Compared) -> str | None:
    values = each.cell.values(CLUSTERING[each.published.metric])
    return f"{values.min():.4f} to {values.max():.4f}" if values.size else None


COLUMNS: Columns = {
    "paper": PAPER["paper"],
    "repetitions": PAPER["seeds"],
    "mean": OURS[HEADLINE],
    "std": _std,
    "range": _range,
}
