"""Published scores of clusters beside ours, as Markdown: mean, spread and range over repetitions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product

from fedmpi.analysis.cells import grouped
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import Judgement, Question, in_words, judge
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import HEADLINE, MARGIN, Compared
from fedmpi.reproduction.published import CLUSTERING, Published
from fedmpi.reproduction.results import Cell, Results
from fedmpi.reproduction.tables import OURS, PAPER, Columns, answered, refused, signed
from fedmpi.tables.markdown import markdown_of


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the published scores and leads, a line per reading and metric."""
    lines = []
    readings = grouped(found, lambda each: each.published.reading)
    for reading, metric in product(readings, CLUSTERING):
        members = [each for each in readings[reading] if each.published.metric == metric]
        of_tables = grouped(members, lambda each: each.published.table)
        text = f"of {len(members)} published figures {answered(members, rules[0])}"
        gaps = [answer.corrected for table in of_tables.values() for *_, answer in _gaps(table)]
        if gaps:
            leading = in_words(gaps, refused(members))
            text += f"; of {len(gaps)} leads of {members[0].published.paper} {leading}"
        title = f"{' and '.join(of_tables)}{f', {reading}' if reading else ''}"
        lines.append(f"- {title}, {metric}: {text}.")
    return "\n".join(lines) + "\n"


def settings_table(results: Results, suite: str) -> str:
    """Return what other settings score: a line per setting, a column per dataset; empty if none was run.

    Parameters
    ----------
    suite : str
        Its cases are called after seed, dataset and setting, parted by hyphens, in any order.
    """
    found: dict[str, dict[str, Cell]] = {}
    for key, repetitions in results.plan(suite).items():
        name = next(iter(repetitions.values()))
        parts = [part for part in name.split("-") if part != key.dataset and not _SEED.fullmatch(part)]
        cell = results.cell(key, repetitions)
        if cell.runs:
            found.setdefault(_joined(parts), {})[key.dataset] = cell
    datasets = list(dict.fromkeys(name for line in found.values() for name in line))
    rows = [[name, *(_scores(line.get(each)) for each in datasets)] for name, line in found.items()]
    return markdown_of(["setting", *datasets], rows) if rows else ""


_SEED = re.compile(r"seed\d+")


def _joined(parts: Sequence[str]) -> str:
    """Return a setting's name; what a hyphen within a number has parted is put together again."""
    return re.sub(r"(\de) (\d)", r"\1-\2", " ".join(parts))


def _scores(cell: Cell | None) -> str:
    """Return mean accuracy and macro F1 in percent, and over how many repetitions where it is one."""
    if cell is None:
        return "-"
    accuracy, f1 = (100 * cell.values(name).mean() for name in CLUSTERING.values())
    return f"{accuracy:.1f}, {f1:.1f}{'' if len(cell.runs) > 1 else ' (one)'}"


def leads(found: Sequence[Compared]) -> str:
    """Return the leads of the paper's own method over each other one: published, ours, and whether it holds.

    Parameters
    ----------
    found : sequence of Compared
        The figures of one metric of one table: a family of judgements. The paper's method has its name.

    Returns
    -------
    str
        Empty where the paper's method is not among them.
    """
    gaps = _gaps(found)
    if not gaps:
        return ""
    entries: dict[str, dict[str, str]] = {}
    for each, published, ours, answer in gaps:
        text = f"{published:+.4f}; {signed(ours)}; {answer}"
        entries.setdefault(each.published.row, {})[each.published.column] = text
    name, columns = found[0].published.paper, list(dict.fromkeys(each.published.column for each, *_ in gaps))
    rows = [
        [f"{name} over {method}", *(line[column] for column in columns)] for method, line in entries.items()
    ]
    return markdown_of(["published; ours; holds?", *columns], rows)


def judged_leads(found: Sequence[Compared]) -> list[tuple[Published, Judgement]]:
    """Return each other method's figure of one metric of one table, and whether the lead over it holds."""
    return [(each.published, answer) for each, *_, answer in _gaps(found)]


def _gaps(found: Sequence[Compared]) -> list[tuple[Compared, float, Estimate | None, Judgement]]:
    """Return each other method with the published lead over it, ours, and whether it holds."""
    own = {each.published.column: each for each in found if each.published.row == each.published.paper}
    others = [each for each in found if each.published.row != each.published.paper]
    if not own:
        return []
    gaps = [_lead(own[each.published.column], each) for each in others]
    judged = judge(
        [
            Question(ours, published - MARGIN, math.inf, each.published.unpublished)
            for each, (published, ours) in zip(others, gaps, strict=True)
        ]
    )
    return [(each, *gap, answer) for each, gap, answer in zip(others, gaps, judged, strict=True)]


def _lead(own: Compared, other: Compared) -> tuple[float, Estimate | None]:
    """Return the published lead and ours, paired by repetition."""
    ours = measures.lead(own.cell, other.cell, CLUSTERING[own.published.metric])
    return own.published.value - other.published.value, ours


def _std(each: Compared) -> str:
    ours = each.ours[HEADLINE]
    return f"{ours.std:.4f}" if ours is not None and ours.freedom else "-"


def _range(each: Compared) -> str:
    values = each.cell.values(CLUSTERING[each.published.metric])
    return f"{values.min():.4f} to {values.max():.4f}" if values.size else "-"


COLUMNS: Columns = {
    "paper": PAPER["paper"],
    "repetitions": PAPER["seeds"],
    "mean": OURS[HEADLINE],
    "std": _std,
    "range": _range,
}
