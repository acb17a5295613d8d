"""The published split against others: accuracies and leads, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.analysis.names import dataset_name
from fedmpi.analysis.reproduction import measures
from fedmpi.analysis.reproduction.cells import AS_PUBLISHED, HEADLINE, MARGIN
from fedmpi.analysis.reproduction.judgement import Question, judge
from fedmpi.analysis.reproduction.pairs import cells_of
from fedmpi.analysis.reproduction.published import Claim, Published
from fedmpi.analysis.reproduction.results import Cell, Results
from fedmpi.analysis.reproduction.statistics import Estimate
from fedmpi.analysis.reproduction.tables import markdown, method, number
from fedmpi.analysis.reproduction.verdicts import published_lead
from fedmpi.analysis.rows import RULES

_Pair = tuple[Cell, Cell]

_SHOWN = (HEADLINE, AS_PUBLISHED)


def accuracy_table(results: Results, reference: str, splits: str) -> str:
    """Return mean and standard deviation over the seeds of the published split, and over other splits."""
    published = {cell.key: cell for cell in cells_of(results, reference)}
    rows = []
    for cell in cells_of(results, splits):
        first = published.get(cell.key)
        row = [dataset_name(cell.key.dataset), method(cell.key)]
        row += ["0" if first is None else str(len(first.runs)), str(len(cell.runs))]
        for rule in _SHOWN:
            for one in (first, cell):
                row.append("-" if one is None else _spread(measures.average(one, RULES[rule])))
        rows.append(row)
    headings = ["dataset", "method", "seeds", "other splits"]
    for rule in _SHOWN:
        headings += [f"{rule}, published split", f"{rule}, other splits"]
    return markdown(headings, rows)


def lead_table(results: Results, splits: str, claims: Sequence[Claim], figures: Sequence[Published]) -> str:
    """Return claimed leads on the published split, on other splits, and over all runs; these are judged."""
    elsewhere = {cell.key: cell for cell in cells_of(results, splits)}
    rows: list[list[str]] = []
    pairs: list[tuple[_Pair, _Pair, float]] = []
    for claim in claims:
        here = _pair(results, claim)
        if claim.kind == "lead" and all(cell.key in elsewhere for cell in here):
            lead = published_lead(claim, figures)
            pairs.append((here, (elsewhere[here[0].key], elsewhere[here[1].key]), lead))
            rows.append([claim.claim, f"{lead:+.4f}"])
    headings = ["claim", "published"]
    for rule, column in RULES.items():
        questions = []
        for row, (here, there, lead) in zip(rows, pairs, strict=True):
            together = _lead((results.cell(here[0].key), results.cell(here[1].key)), column)
            row += [_counted(_lead(here, column)), _counted(_lead(there, column)), _counted(together)]
            questions.append(Question(together, lead - MARGIN, math.inf))
        for row, answer in zip(rows, judge(questions), strict=True):
            row.append(str(answer).replace("seed", "run"))
        headings += [f"{rule}: published split", "other splits", "all runs", "verdict"]
    return markdown(headings, rows)


def _pair(results: Results, claim: Claim) -> _Pair:
    return results.one(claim.suite, claim.cases)[0], results.one(claim.suite, claim.against)[0]


def _lead(pair: _Pair, column: str) -> Estimate | None:
    return measures.lead(*pair, column)


def _counted(lead: Estimate | None) -> str:
    return "-" if lead is None else f"{lead.signed} (n = {lead.count})"


def _spread(average: Estimate | None) -> str:
    if average is None:
        return "-"
    return number(average) if not average.freedom else f"{number(average)}, {average.std:.4f}"
