"""Claims decided while repetitions come in: what each look says, and how many seeds are to be expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.cells import grouped
from fedmpi.judging.estimates import FEWEST, LEVEL
from fedmpi.judging.judgement import CONFIRMED, Question, refusal
from fedmpi.judging.sequential import STUDENT, Looks, nominal_levels, rejected
from fedmpi.reproduction.published import HEADLINE, Published
from fedmpi.reproduction.repetitions import Posed, own_rule
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.verdicts import family

_AT_LIMIT = 1e-9
"""A figure that is nearer to a limit is at it: shares of clients are rounded."""


@dataclass(frozen=True)
class Design:
    """How claims are decided; it must not change while they are.

    Attributes
    ----------
    max_seeds : int
        Repetitions of a cell at the last look.
    spending : str
        How the level is spent over the looks: a key of `fedmpi.judging.sequential.SPENDING`.
    """

    max_seeds: int
    spending: str

    def looks(self, posed: Posed) -> tuple[int, ...]:
        """Return after how many repetitions a claim is looked at: all of the suite's own, then every one."""
        first = max(FEWEST, posed.own)
        return tuple(range(first, max(self.max_seeds, first) + 1))

    def fractions(self, posed: Posed) -> tuple[float, ...]:
        """Return the same as parts of the repetitions at the last look."""
        looks = self.looks(posed)
        return tuple(count / looks[-1] for count in looks)


@dataclass(frozen=True)
class Standing:
    """Where a claim stands.

    Attributes
    ----------
    posed : Posed
    question : Question
        After `seeds` repetitions.
    seeds : int
        Repetitions that it stands on; of a decided claim those that decided it.
    looks : int
        How often it was looked at.
    verdict : str
        Empty while it is undecided.
    next_look : int or None
        After how many repetitions it is looked at next; None where it is decided or was looked at last.
    undecided : int
        Claims of its family that are undecided, of which each has a part of the level.
    """

    posed: Posed
    question: Question
    seeds: int
    looks: int
    verdict: str
    next_look: int | None
    undecided: int


def standings(
    posed: Sequence[Posed], figures: Sequence[Published], results: Results, design: Design
) -> list[Standing]:
    """Return where claims stand, each under the selection rule of its own paper.

    A family, for Holm's correction, are the claims about the suite that `family` gives the same.
    """
    found: dict[int, Standing] = {}
    numbered = enumerate(_Sequence(each, figures, results, design) for each in posed)
    for members in grouped(numbered, lambda each: family(each[1].posed.claim)).values():
        decided = _decided([each for _, each in members], design)
        undecided = sum(not verdict for verdict, _ in decided)
        for (number, each), (verdict, seeds) in zip(members, decided, strict=True):
            found[number] = each.standing(verdict, seeds, undecided)
    return [found[number] for number in range(len(posed))]


class _Sequence:
    """A claim and its looks so far."""

    def __init__(self, posed: Posed, figures: Sequence[Published], results: Results, design: Design) -> None:
        self.posed, self._figures, self._results = posed, figures, results
        self._available = posed.available(results)
        self._rule = own_rule(posed.claim, HEADLINE)
        self._counts, self._fractions = design.looks(posed), design.fractions(posed)
        self.taken = [count for count in self._counts if count <= self._available]
        questions = [self._question(count) for count in self.taken]
        self._outside = [question.outside_p for question in questions]
        self._inside = [question.inside_p for question in questions]
        self.refused = refusal(posed.first(figures, results, 0).unpublished)

    def _question(self, count: int) -> Question:
        """Return the question after so many repetitions."""
        return self.posed.first(self._figures, self._results, count).question(self._rule)

    def looks(self, count: int, confirmed: bool) -> Looks:
        """Return what the looks up to so many repetitions say of what speaks against a verdict."""
        number = sum(each <= count for each in self.taken)
        p_values = self._outside if confirmed else self._inside
        return Looks(tuple(p_values[:number]), self._fractions)

    def standing(self, verdict: str, seeds: int, undecided: int) -> Standing:
        """Return where it stands."""
        count = seeds if verdict else self._available
        later = next((each for each in self._counts if each > count), None)
        looks = sum(each <= count for each in self.taken)
        next_look = None if verdict else later
        return Standing(self.posed, self._question(count), count, looks, verdict, next_look, undecided)


def _decided(members: Sequence[_Sequence], design: Design) -> list[tuple[str, int]]:
    """Return each claim's verdict and after how many repetitions it fell; empty and 0 where it did not.

    The looks are gone through as they were taken: a sweep that was interrupted decides as one that was not.
    """
    verdicts = [("", 0)] * len(members)
    for count in sorted({each for sequence in members for each in sequence.taken}):
        reached = [seeds or count for _, seeds in verdicts]
        for confirmed in (True, False):
            looks = [each.looks(upto, confirmed) for each, upto in zip(members, reached, strict=True)]
            for place, yes in enumerate(rejected(looks, LEVEL, design.spending)):
                if yes and not verdicts[place][0]:
                    verdicts[place] = (CONFIRMED if confirmed else members[place].refused, count)
    return verdicts


def expected(standing: Standing, design: Design, power: float) -> int | None:
    """Return after how many repetitions an undecided claim is decided with some probability, by our figure.

    Figure and spread are taken to stay as they are, the other claims of the family to stay undecided. Beyond
    the last look it is the size of a single test. None where there is no spread, or the figure is at a limit.

    Parameters
    ----------
    standing : Standing
    design : Design
    power : float
        The probability; 0.5 is an even chance.
    """
    from scipy.special import ndtri, stdtr

    question, one = standing.question, standing.question.estimate
    if one is None or not one.freedom:
        return None
    distance = min(abs(one.mean - question.low), abs(question.high - one.mean))  # from the nearer limit
    if distance < _AT_LIMIT:
        return None
    looks = design.looks(standing.posed)
    if one.error == 0:
        return looks[0]
    share, shift, deviation = STUDENT * LEVEL / standing.undecided, float(ndtri(power)), one.std
    allowed = nominal_levels(share, design.fractions(standing.posed), design.spending)
    for count, level in zip(looks, allowed, strict=True):
        if float(stdtr(count - 1, shift - distance * math.sqrt(count) / deviation)) <= level:
            return max(count, standing.next_look or count)
    single = math.ceil(((shift - float(ndtri(share))) * deviation / distance) ** 2)
    return max(single, looks[-1] + 1)
