"""What a paper's claims ask of our runs, and what the paper prints about them: an entry per kind of claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import NOT_RUN, Question
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import MARGIN, RELATIVE_MARGIN
from fedmpi.reproduction.published import BY_CLIENT, CLUSTERING, KINDS, REFERENCE, Claim, Published
from fedmpi.reproduction.results import Cell, Repetition
from fedmpi.reproduction.tables import signed


@dataclass(frozen=True)
class Asked:
    """One claim under one selection rule.

    Attributes
    ----------
    question : Question
    shown : str
        Our figure.
    """

    question: Question
    shown: str


class Source(Protocol):
    """Where the runs of a cell come from."""

    def one(self, name: str, cases: str) -> tuple[Cell, list[Repetition]]:
        """Return the one cell of a suite's cases, and the repetitions that it lacks."""


@dataclass(frozen=True)
class Book:
    """A paper's figures beside our runs.

    Attributes
    ----------
    figures : sequence of Published
    results : Source
    """

    figures: Sequence[Published]
    results: Source

    def figure(self, claim: Claim, cases: str, metric: str) -> Published:
        """Return what the paper prints of cases.

        Raises
        ------
        BadInput
            No table prints it.
        """
        for each in self.figures:
            if (each.suite, each.cases, each.metric) == (claim.suite, cases, metric):
                return each
        raise BadInput(f"{claim.suite} {cases}: a claim about it, but no published {metric}")

    def lead(self, claim: Claim, metric: str = "") -> float:
        """Return by how much the printed figure of a claim's cases is better than the other one."""
        name = metric or claim.metric or "average"
        ours, other = (self.figure(claim, cases, name) for cases in (claim.cases, claim.against))
        return _sign(claim) * (ours.value - other.value)

    def margin(self, claim: Claim) -> float:
        """Return what figures that are the same may differ by; errors relative to the printed one."""
        if claim.score is None or claim.score.bounded:
            return MARGIN
        return RELATIVE_MARGIN * self.figure(claim, claim.against, claim.metric).value

    def unpublished(self, claim: Claim) -> str:
        """Return the settings of a claim's cases that are not published."""
        cases = (claim.cases, claim.against)
        found = [
            each.unpublished for each in self.figures if each.suite == claim.suite and each.cases in cases
        ]
        return next(filter(None, found), "")

    def pair(self, claim: Claim) -> tuple[Cell, Cell]:
        """Return our runs of a claim's cases and of what it is measured against."""
        ours, other = (self.results.one(claim.suite, cases)[0] for cases in (claim.cases, claim.against))
        return ours, other

    def trio(self, claim: Claim) -> measures.Trio:
        """Return the same, and self-train's."""
        return *self.pair(claim), self.results.one(claim.suite, claim.over)[0]


@dataclass(frozen=True)
class Kind:
    """How a kind of claim is put.

    Attributes
    ----------
    heading : str
        What its table is called.
    printed : callable
        What the paper prints about it.
    limits : callable
        Of a claim: between what limits the truth must be.
    ours : callable
        Of a claim and a selection rule: our figure.
    text : callable
        Our figure and its cells' clients, as text.
    """

    heading: str
    printed: Callable[[Book, Claim], str]
    limits: Callable[[Book, Claim], tuple[float, float]]
    ours: Callable[[Book, Claim, str], Estimate | None]
    text: Callable[[Book, Claim, Estimate], str] = lambda book, claim, ours: signed(ours)


def asked(book: Book, claim: Claim, rule: str) -> Asked:
    """Return what a claim asks under one selection rule; a reading that no suite computes is not run."""
    kind = BY_KIND[claim.kind]
    if not claim.suite:
        return Asked(Question(None, 0.0, 0.0), NOT_RUN)
    estimate = kind.ours(book, claim, rule)
    question = Question(estimate, *kind.limits(book, claim), book.unpublished(claim))
    return Asked(question, NOT_RUN if estimate is None else kind.text(book, claim, estimate))


def _sign(claim: Claim) -> int:
    """Return 1 where a higher figure is the better one, else -1."""
    return 1 if claim.score is None else claim.score.sign


def _lead(book: Book, claim: Claim, rule: str) -> Estimate | None:
    """Return by how much our figure of a claim's cases is better than the other one, paired."""
    ours, other = book.pair(claim)
    if claim.score is None:
        found = measures.lead(ours, other, CLUSTERING.get(claim.metric, RULES[rule]))
    else:
        column = ours.column(claim.score, rule, by_client=claim.metric in BY_CLIENT)
        found = measures.lead_of_runs(ours, other, column)
    return None if found is None else replace(found, mean=_sign(claim) * found.mean)


def _clients(book: Book, claim: Claim) -> int:
    return book.figure(claim, claim.cases, "ratio").clients or 1


def _printed_lead(book: Book, claim: Claim, metric: str = "") -> str:
    name = metric or claim.metric or "average"
    ours, other = (book.figure(claim, cases, name) for cases in (claim.cases, claim.against))
    return f"{book.lead(claim, metric):+.4f} ({ours.printed} against {other.printed})"


def _published_part(book: Book, claim: Claim) -> tuple[float, float]:
    """Return by which part of self-train's printed average the method's is above it, and that average."""
    ours = book.figure(claim, claim.cases, "average")
    alone = next(
        each
        for each in book.figures
        if (each.place, each.column, each.row, each.metric) == (ours.place, ours.column, REFERENCE, "average")
    )
    return ours.value / alone.value - 1, alone.value


def _percent(value: float) -> str:
    return f"{100 * value:+.2f} %"


def _least_part(book: Book, claim: Claim) -> tuple[float, float]:
    published, alone = _published_part(book, claim)
    return published - MARGIN / alone, math.inf


def _part_text(book: Book, claim: Claim, ours: Estimate) -> str:
    return _percent(ours.mean) + ("" if math.isnan(ours.half) else f" ± {100 * ours.half:.2f}")


def _counts(book: Book, claim: Claim) -> tuple[int, int]:
    """Return how many clients the paper says that both sides improve."""
    figures = (book.figure(claim, cases, "ratio") for cases in (claim.cases, claim.against))
    first, second = (round(each.value * (each.clients or 1)) for each in figures)
    return first, second


def _printed_counts(book: Book, claim: Claim) -> str:
    first, second = _counts(book, claim)
    return f"{first} against {second} of {_clients(book, claim)}"


def _more_text(book: Book, claim: Claim, ours: Estimate) -> str:
    clients = _clients(book, claim)
    return f"{clients * ours.mean:+.0f}" + ("" if math.isnan(ours.half) else f" ± {clients * ours.half:.1f}")


def _around(value: float, step: float) -> tuple[float, float]:
    return value - step, value + step


def _improved(book: Book, claim: Claim, rule: str) -> Estimate | None:
    gains = measures.gains(*book.pair(claim), RULES[rule])
    return None if gains is None else gains.improved


def _improved_text(book: Book, claim: Claim, ours: Estimate) -> str:
    clients = _clients(book, claim)
    return f"{round(ours.mean * clients)}/{clients}"


BY_KIND: Mapping[str, Kind] = {
    "lead": Kind(
        "Leads",
        _printed_lead,
        lambda book, claim: (book.lead(claim) - book.margin(claim), math.inf),
        _lead,
    ),
    "behind": Kind(
        "Behind by as much as published",
        _printed_lead,
        lambda book, claim: _around(book.lead(claim), book.margin(claim)),
        _lead,
    ),
    "level": Kind(
        "As good after half the rounds",
        lambda book, claim: "at least +0",
        lambda book, claim: (-book.margin(claim), math.inf),
        _lead,
    ),
    "above": Kind("Orderings", _printed_lead, lambda book, claim: (0.0, math.inf), _lead),
    "alike": Kind(
        "As good as each other",
        _printed_lead,
        lambda book, claim: _around(0.0, book.margin(claim)),
        _lead,
    ),
    "gain": Kind(
        "Average gain over self-train, as a part of its accuracy",
        lambda book, claim: _percent(_published_part(book, claim)[0]),
        _least_part,
        lambda book, claim, rule: measures.part_gained(*book.pair(claim), RULES[rule]),
        _part_text,
    ),
    "improved": Kind(
        "Clients that gain over self-train",
        lambda book, claim: book.figure(claim, claim.cases, "ratio").printed,
        lambda book, claim: _around(
            book.figure(claim, claim.cases, "ratio").value, 1 / _clients(book, claim)
        ),
        _improved,
        _improved_text,
    ),
    "more": Kind(
        "Clients improved beyond those of another method",
        _printed_counts,
        lambda book, claim: (book.lead(claim, "ratio") - 1 / _clients(book, claim), math.inf),
        lambda book, claim, rule: measures.more_improved(book.trio(claim), RULES[rule]),
        _more_text,
    ),
    "twice": Kind(
        "Clients improved beyond twice those of another method",
        _printed_counts,
        lambda book, claim: (-1 / _clients(book, claim), math.inf),
        lambda book, claim, rule: measures.more_improved(book.trio(claim), RULES[rule], times=2),
        _more_text,
    ),
    "least": Kind(
        "Smallest gain of a client, over another method's",
        lambda book, claim: _printed_lead(book, claim, "min gain"),
        lambda book, claim: (book.lead(claim, "min gain") - MARGIN, math.inf),
        lambda book, claim, rule: measures.least_lead(book.trio(claim), RULES[rule]),
    ),
}

assert tuple(BY_KIND) == KINDS
