"""What a paper's claims ask of our runs, and what the paper prints about them: an entry per kind of claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import NOT_RUN, Question
from fedmpi.judging.spreads import Figure
from fedmpi.reproduction import measures
from fedmpi.reproduction.published import KINDS, MARGIN, REFERENCE, Claim, Published
from fedmpi.reproduction.results import Cell


@dataclass(frozen=True)
class Stated:
    """A claim beside the figures and the runs that it is about.

    Attributes
    ----------
    claim : Claim
    figures : sequence of Published
        Of its paper.
    cell_of : callable
        From a suite and cases to the one cell of our runs of them.
    """

    claim: Claim
    figures: Sequence[Published]
    cell_of: Callable[[str, str], Cell]

    def figure(self, cases: str, metric: str) -> Published:
        """Return what the paper prints of cases.

        Raises
        ------
        BadInput
            No table prints it.
        """
        suite = self.claim.suite
        for each in self.figures:
            if (each.suite, each.cases, each.metric) == (suite, cases, metric):
                return each
        raise BadInput(f"{suite} {cases}: a claim about it, but no published {metric}")

    def pair(self, metric: str = "") -> list[Published]:
        """Return what the paper prints of the claim's cases and of what they are measured against."""
        name = metric or self.claim.metric or "average"
        return [self.figure(cases, name) for cases in (self.claim.cases, self.claim.against)]

    def lead(self, metric: str = "") -> float:
        """Return by how much the printed figure of the claim's cases is better than the other one."""
        ours, other = self.pair(metric)
        return self.claim.sign * (ours.number - other.number)

    @property
    def unpublished(self) -> str:
        """The settings of the claim's cases that are not published."""
        suite, cases = self.claim.suite, (self.claim.cases, self.claim.against)
        found = [each.unpublished for each in self.figures if each.suite == suite and each.cases in cases]
        return next(filter(None, found), "")

    @property
    def cells(self) -> list[Cell]:
        """Our runs of the claim's cases, of what they are measured against, and of what both gain over."""
        cases = (self.claim.cases, self.claim.against, self.claim.over)
        return [self.cell_of(self.claim.suite, each) for each in cases if each]

    def question(self, rule: str) -> Question:
        """Return what it asks under a selection rule; a reading that no suite computes is not run."""
        if not self.claim.suite:
            return Question(None, 0.0, 0.0)
        kind = BY_KIND[self.claim.kind]
        return Question(kind.measure.ours(self, rule), *kind.limits(self), self.unpublished)

    def shown(self, question: Question) -> str:
        """Return our figure of its question."""
        ours = question.estimate
        return NOT_RUN if ours is None else BY_KIND[self.claim.kind].measure.text(self, ours)

    @property
    def printed(self) -> str:
        """What the paper prints about it."""
        kind = BY_KIND[self.claim.kind]
        return kind.printed or kind.measure.printed(self)


@dataclass(frozen=True)
class Lead:
    """By how much a claim's cases score better than what they are measured against, paired.

    Attributes
    ----------
    metric : str
        Whose figures the paper prints; blank for the claim's.
    gains : callable or None
        `least` or `improved` of `measures`: it is about this figure of gains over a third method.
    times : int
        The other method's gains count so many times.
    """

    metric: str = ""
    gains: Figure | None = None
    times: int = 1

    def published(self, stated: Stated) -> float:
        """Return the paper's figure."""
        return stated.lead(self.metric)

    def margin(self, stated: Stated) -> float:
        """Return what figures that are the same may differ by; errors relative to the printed one."""
        score = stated.claim.score
        return MARGIN if score is None or score.bounded else stated.pair()[1].margin

    def printed(self, stated: Stated) -> str:
        """Return what the paper prints about it."""
        ours, other = stated.pair(self.metric)
        return f"{self.published(stated):+.4f} ({ours.value} against {other.value})"

    def ours(self, stated: Stated, rule: str) -> Estimate | None:
        """Return our figure under a selection rule; None without runs."""
        if self.gains:
            return measures.gains_apart(stated.cells, RULES[rule], self.gains, self.times)
        claim, (ours, other) = stated.claim, stated.cells[:2]
        column = measures.column(ours, claim.metric, rule)
        found = measures.lead(ours, other, column, whole_runs=claim.score is not None)
        return None if found is None else replace(found, mean=claim.sign * found.mean)

    def text(self, stated: Stated, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        return ours.signed


class Part(Lead):
    """By which part of self-train's average the method's is above it."""

    def published(self, stated: Stated) -> float:
        """Return the paper's figure."""
        return stated.figure(stated.claim.cases, "average").number / self._alone(stated) - 1

    def margin(self, stated: Stated) -> float:
        """Return what figures that are the same may differ by."""
        return MARGIN / self._alone(stated)

    def printed(self, stated: Stated) -> str:
        """Return what the paper prints about it."""
        return f"{100 * self.published(stated):+.2f} %"

    def ours(self, stated: Stated, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        ours, other = stated.cells[:2]
        return measures.part_gained(ours, other, RULES[rule])

    def text(self, stated: Stated, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        return f"{100 * ours.mean:+.2f} %" + ("" if math.isnan(ours.half) else f" ± {100 * ours.half:.2f}")

    def _alone(self, stated: Stated) -> float:
        """Return self-train's printed average, in the column of the table."""
        ours = stated.figure(stated.claim.cases, "average")
        wanted = (ours.place, ours.column, REFERENCE, ours.metric)
        places = {(each.place, each.column, each.row, each.metric): each for each in stated.figures}
        return places[wanted].number


class MoreImproved(Lead):
    """The share of clients that gain beyond another method's; a client is the margin."""

    def margin(self, stated: Stated) -> float:
        """Return what figures that are the same may differ by."""
        return stated.pair("ratio")[0].margin

    def printed(self, stated: Stated) -> str:
        """Return what the paper prints about it."""
        ours, other = (each.value.split("/")[0] for each in stated.pair("ratio"))
        return f"{ours} against {other} of {_clients(stated)}"

    def text(self, stated: Stated, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        clients = _clients(stated)
        half = "" if math.isnan(ours.half) else f" ± {clients * ours.half:.1f}"
        return f"{clients * ours.mean:+.0f}{half}"


class Improved(MoreImproved):
    """The share of clients that gain; a client is the margin."""

    def published(self, stated: Stated) -> float:
        """Return the paper's figure."""
        return stated.figure(stated.claim.cases, "ratio").number

    def margin(self, stated: Stated) -> float:
        """Return what figures that are the same may differ by."""
        return stated.figure(stated.claim.cases, "ratio").margin

    def printed(self, stated: Stated) -> str:
        """Return what the paper prints about it."""
        return stated.figure(stated.claim.cases, "ratio").value

    def ours(self, stated: Stated, rule: str) -> Estimate | None:
        """Return our figure; None without runs."""
        ours, alone = stated.cells[:2]
        gains = measures.gains(ours, alone, RULES[rule])
        return None if gains is None else gains.improved

    def text(self, stated: Stated, ours: Estimate) -> str:
        """Return our figure as it is shown."""
        return measures.ratio(ours, _clients(stated))


def _clients(stated: Stated) -> int:
    """Return how many clients a claim's ratios are of."""
    return stated.figure(stated.claim.cases, "ratio").clients or 1


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

    def limits(self, stated: Stated) -> tuple[float, float]:
        """Return between what limits the truth must be."""
        middle = 0.0 if self.over_none else self.measure.published(stated)
        margin = self.measure.margin(stated) if self.margin else 0.0
        return middle - margin, middle + margin if self.around else math.inf


BY_KIND: Mapping[str, Kind] = {
    "lead": Kind("Leads", Lead()),
    "behind": Kind("Behind by as much as published", Lead(), around=True),
    "level": Kind("As good after half the rounds", Lead(), over_none=True, printed="at least +0"),
    "above": Kind("Orderings", Lead(), over_none=True, margin=False),
    "alike": Kind("As good as each other", Lead(), over_none=True, around=True),
    "gain": Kind("Average gain over self-train, as a part of its accuracy", Part()),
    "improved": Kind("Clients that gain over self-train", Improved(), around=True),
    "more": Kind("Clients improved beyond those of another method", MoreImproved("ratio", measures.improved)),
    "twice": Kind(
        "Clients improved beyond twice those of another method",
        MoreImproved("ratio", measures.improved, 2),
        over_none=True,
    ),
    "least": Kind("Smallest gain of a client, over another method's", Lead("min gain", measures.least)),
}

assert tuple(BY_KIND) == KINDS
