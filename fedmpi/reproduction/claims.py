"""What a paper's claims ask of our runs, and what the paper prints about them: an entry per kind of claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import NOT_RUN, Question
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import MARGIN, RELATIVE_MARGIN
from fedmpi.reproduction.published import KINDS, REFERENCE, Claim, Published
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

    def pair_of_figures(self, claim: Claim, metric: str = "") -> tuple[Published, Published]:
        """Return what the paper prints of a claim's cases and of what they are measured against."""
        name = metric or claim.metric or "average"
        return self.figure(claim, claim.cases, name), self.figure(claim, claim.against, name)

    def lead(self, claim: Claim, metric: str = "") -> float:
        """Return by how much the printed figure of a claim's cases is better than the other one."""
        ours, other = self.pair_of_figures(claim, metric)
        return claim.sign * (ours.value - other.value)

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


class Lead:
    """By how much a claim's cases score better than what they are measured against, paired."""

    metric = ""
    """Whose figures the paper prints; blank for the claim's."""

    def published(self, book: Book, claim: Claim) -> float:
        """Return the paper's figure."""
        return book.lead(claim, self.metric)

    def margin(self, book: Book, claim: Claim) -> float:
        """Return what figures that are the same may differ by; errors relative to the printed one."""
        if claim.score is None or claim.score.bounded:
            return MARGIN
        return RELATIVE_MARGIN * book.figure(claim, claim.against, claim.metric).value

    def printed(self, book: Book, claim: Claim) -> str:
        """Return what the paper prints about it."""
        ours, other = book.pair_of_figures(claim, self.metric)
        return f"{self.published(book, claim):+.4f} ({ours.printed} against {other.printed})"

    def ours(self, book: Book, claim: Claim, rule: str) -> Estimate | None:
        """Return our figure under a selection rule; None without runs."""
        ours, other = book.pair(claim)
        lead = measures.lead if claim.score is None else measures.lead_of_runs
        found = lead(ours, other, measures.column(ours, claim.metric, rule))
        return None if found is None else replace(found, mean=claim.sign * found.mean)

    def text(self, book: Book, claim: Claim, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        return signed(ours)


class LeastGain(Lead):
    """By how much the smallest gain of a client is above another method's."""

    metric = "min gain"

    def ours(self, book: Book, claim: Claim, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        return measures.least_lead(book.trio(claim), RULES[rule])


class Part(Lead):
    """By which part of self-train's average the method's is above it."""

    def published(self, book: Book, claim: Claim) -> float:
        """Return the paper's figure."""
        return book.figure(claim, claim.cases, "average").value / self._alone(book, claim) - 1

    def margin(self, book: Book, claim: Claim) -> float:
        """Return what figures that are the same may differ by."""
        return MARGIN / self._alone(book, claim)

    def printed(self, book: Book, claim: Claim) -> str:
        """Return what the paper prints about it."""
        return f"{100 * self.published(book, claim):+.2f} %"

    def ours(self, book: Book, claim: Claim, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        return measures.part_gained(*book.pair(claim), RULES[rule])

    def text(self, book: Book, claim: Claim, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        return f"{100 * ours.mean:+.2f} %" + ("" if math.isnan(ours.half) else f" ± {100 * ours.half:.2f}")

    def _alone(self, book: Book, claim: Claim) -> float:
        """Return self-train's printed average, in the column of the table."""
        ours = book.figure(claim, claim.cases, "average")
        wanted = (ours.place, ours.column, REFERENCE, "average")
        return next(
            each.value for each in book.figures if (each.place, each.column, each.row, each.metric) == wanted
        )


class Improved(Lead):
    """The share of clients that gain; a client is the margin."""

    def published(self, book: Book, claim: Claim) -> float:
        """Return the paper's figure."""
        return book.figure(claim, claim.cases, "ratio").value

    def margin(self, book: Book, claim: Claim) -> float:
        """Return what figures that are the same may differ by."""
        return 1 / self.clients(book, claim)

    def printed(self, book: Book, claim: Claim) -> str:
        """Return what the paper prints about it."""
        return book.figure(claim, claim.cases, "ratio").printed

    def ours(self, book: Book, claim: Claim, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        gains = measures.gains(*book.pair(claim), RULES[rule])
        return None if gains is None else gains.improved

    def text(self, book: Book, claim: Claim, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        clients = self.clients(book, claim)
        return f"{round(ours.mean * clients)}/{clients}"

    def clients(self, book: Book, claim: Claim) -> int:
        """Return of how many clients."""
        return book.figure(claim, claim.cases, "ratio").clients or 1


@dataclass(frozen=True)
class MoreImproved(Improved):
    """The share of clients that gain less so many times another method's."""

    times: int = 1

    def published(self, book: Book, claim: Claim) -> float:
        """Return the paper's figure."""
        return book.lead(claim, "ratio")

    def printed(self, book: Book, claim: Claim) -> str:
        """Return what the paper prints about it."""
        figures = book.pair_of_figures(claim, "ratio")
        ours, other = (round(each.value * (each.clients or 1)) for each in figures)
        return f"{ours} against {other} of {self.clients(book, claim)}"

    def ours(self, book: Book, claim: Claim, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        return measures.more_improved(book.trio(claim), RULES[rule], self.times)

    def text(self, book: Book, claim: Claim, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        clients = self.clients(book, claim)
        half = "" if math.isnan(ours.half) else f" ± {clients * ours.half:.1f}"
        return f"{clients * ours.mean:+.0f}{half}"


@dataclass(frozen=True)
class Kind:
    """How a kind of claim is put: our figure is as large as the paper's, or than none, but for a margin.

    Attributes
    ----------
    heading : str
        What its table is called.
    measure : Lead
        What it is about.
    around : bool
        Whether it must not be larger either.
    over_none : bool
        Whether it is held against no lead in place of the published one.
    margin : bool
    printed : str
        In place of what the paper prints.
    """

    heading: str
    measure: Lead
    around: bool = False
    over_none: bool = False
    margin: bool = True
    printed: str = ""

    def limits(self, book: Book, claim: Claim) -> tuple[float, float]:
        """Return between what limits the truth must be."""
        middle = 0.0 if self.over_none else self.measure.published(book, claim)
        margin = self.measure.margin(book, claim) if self.margin else 0.0
        return middle - margin, middle + margin if self.around else math.inf


BY_KIND: Mapping[str, Kind] = {
    "lead": Kind("Leads", Lead()),
    "behind": Kind("Behind by as much as published", Lead(), around=True),
    "level": Kind("As good after half the rounds", Lead(), over_none=True, printed="at least +0"),
    "above": Kind("Orderings", Lead(), over_none=True, margin=False),
    "alike": Kind("As good as each other", Lead(), over_none=True, around=True),
    "gain": Kind("Average gain over self-train, as a part of its accuracy", Part()),
    "improved": Kind("Clients that gain over self-train", Improved(), around=True),
    "more": Kind("Clients improved beyond those of another method", MoreImproved()),
    "twice": Kind(
        "Clients improved beyond twice those of another method", MoreImproved(times=2), over_none=True
    ),
    "least": Kind("Smallest gain of a client, over another method's", LeastGain()),
}

assert tuple(BY_KIND) == KINDS


def asked(book: Book, claim: Claim, rule: str) -> Asked:
    """Return what a claim asks under one selection rule; a reading that no suite computes is not run."""
    kind = BY_KIND[claim.kind]
    if not claim.suite:
        return Asked(Question(None, 0.0, 0.0), NOT_RUN)
    estimate = kind.measure.ours(book, claim, rule)
    question = Question(estimate, *kind.limits(book, claim), book.unpublished(claim))
    return Asked(question, NOT_RUN if estimate is None else kind.measure.text(book, claim, estimate))


def printed(book: Book, claim: Claim) -> str:
    """Return what the paper prints about a claim."""
    kind = BY_KIND[claim.kind]
    return kind.printed or kind.measure.printed(book, claim)
