"""The published split against others: accuracies and leads, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.analysis.names import dataset_name
from fedmpi.analysis.rows import RULES
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, HEADLINE, MARGIN
from fedmpi.reproduction.claims import Book
from fedmpi.reproduction.judgement import Question, judge
from fedmpi.reproduction.pairs import cells_of
from fedmpi.reproduction.published import Claim, Published
from fedmpi.reproduction.results import Cell, Results
from fedmpi.reproduction.statistics import Estimate
from fedmpi.reproduction.tables import markdown, method, number

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
    """Return claimed leads on the published split and on other splits, which are judged.

    The published split's runs share it, so they are no repetitions of the others: the two stay apart.
    """
    book = Book(figures, results)
    elsewhere = {cell.key: cell for cell in cells_of(results, splits)}
    rows: list[list[str]] = []
    pairs: list[tuple[_Pair, _Pair, Claim]] = []
    for claim in claims:
        if claim.kind != "lead":
            continue
        here = book.pair(claim)
        if all(cell.key in elsewhere for cell in here):
            pairs.append((here, (elsewhere[here[0].key], elsewhere[here[1].key]), claim))
            rows.append([claim.claim, f"{book.lead(claim):+.4f}"])
    headings = ["claim", "published"]
    for rule, column in RULES.items():
        questions = []
        for row, (here, there, claim) in zip(rows, pairs, strict=True):
            other = _lead(there, column)
            row += [_counted(_lead(here, column), "seeds"), _counted(other, "splits")]
            questions.append(Question(other, book.lead(claim) - MARGIN, math.inf, book.unpublished(claim)))
        for row, answer in zip(rows, judge(questions), strict=True):
            row.append(str(answer).replace("seed", "split"))
        headings += [f"{rule}: published split", "other splits", "verdict on these"]
    return markdown(headings, rows)


def _lead(pair: _Pair, column: str) -> Estimate | None:
    return measures.lead(*pair, column)


def _counted(lead: Estimate | None, what: str) -> str:
    return "-" if lead is None else f"{lead.signed} ({lead.count} {what})"


def _spread(average: Estimate | None) -> str:
    if average is None:
        return "-"
    return number(average) if not average.freedom else f"{number(average)}, {average.std:.4f}"
