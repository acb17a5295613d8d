"""Confirmed, refuted or undecided: claims tested against their limits, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.reproduction.statistics import Estimate, holm

LEVEL = 0.05
"""Chance of even one false confirmation, and of even one false refutation, in a family of judgements."""

FEWEST_SEEDS = 3
"""With fewer nothing is decided: a table's methods share their seeds, and are no substitute for them."""

CONFIRMED, REFUTED = "confirmed", "refuted"


@dataclass(frozen=True)
class Question:
    """Whether the truth is between two limits.

    Attributes
    ----------
    estimate : Estimate or None
        None: nothing was run yet.
    low, high : float
        May be infinite.
    """

    estimate: Estimate | None
    low: float
    high: float


@dataclass(frozen=True)
class Judgement:
    """An answer, and the one that would be given without correction.

    ``confirmed``: the truth is surely between the limits; ``refuted``: surely not;
    ``undecided at n seeds``; ``open``: nothing was run.
    """

    corrected: str
    plain: str

    def __str__(self) -> str:
        if self.corrected in (CONFIRMED, REFUTED):
            return f"**{self.corrected}**"
        return self.corrected if self.plain == self.corrected else f"{self.corrected} (alone: {self.plain})"


def judge(questions: Sequence[Question]) -> list[Judgement]:
    """Judge a family of questions.

    Confirmed are those where both one-sided tests reject a truth outside the
    limits, refuted those where the test of a truth between them rejects; the
    p-values of either kind are adjusted for the number of questions that have
    an interval and seeds enough.
    """
    asked = [place for place, question in enumerate(questions) if _is_decidable(question)]
    estimates = [(questions[place], questions[place].estimate) for place in asked]
    inside = [_outside_p(question, one) for question, one in estimates if one is not None]
    outside = [_inside_p(question, one) for question, one in estimates if one is not None]
    found = [_undecided(question) for question in questions]
    corrected = zip(asked, holm(inside), holm(outside), inside, outside, strict=True)
    for place, sure_inside, sure_outside, plain_inside, plain_outside in corrected:
        undecided = found[place].corrected
        found[place] = Judgement(
            _answer(sure_inside, sure_outside, undecided), _answer(plain_inside, plain_outside, undecided)
        )
    return found


def _is_decidable(question: Question) -> bool:
    one = question.estimate
    return one is not None and one.freedom > 0 and one.count >= FEWEST_SEEDS


def _outside_p(question: Question, one: Estimate) -> float:
    """Return the p-value of a truth outside the limits."""
    return max(one.tail(one.value - question.low), one.tail(question.high - one.value))


def _inside_p(question: Question, one: Estimate) -> float:
    """Return the p-value of a truth between the limits: at the nearer one, by either side."""
    distance = max(question.low - one.value, one.value - question.high)
    return min(1.0, one.tail(distance) + one.tail(distance + question.high - question.low))


def _undecided(question: Question) -> Judgement:
    if question.estimate is None:
        return Judgement("open", "open")
    count = question.estimate.count
    text = f"undecided at {count} seed{'s' if count > 1 else ''}"
    return Judgement(text, text)


def _answer(sure_inside: float, sure_outside: float, undecided: str) -> str:
    if sure_inside <= LEVEL:
        return CONFIRMED
    return REFUTED if sure_outside <= LEVEL else undecided
