"""Confirmed, refuted or undecided: questions tested against their limits, corrected for their number."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedmpi.judging.estimates import FEWEST, LEVEL, Estimate, holm

CONFIRMED, REFUTED = "confirmed", "refuted"
NOT_REACHED = "not reached at these settings"
"""In place of refuted where the settings are not published: others may reach it."""

DEPENDS = "depends on the reading"
"""Confirmed in one reading of a paper, surely not in another."""

NOT_RUN = "not run"
MOST_SEEDS = 1000
"""Beyond it no number of seeds is named."""

_WITHOUT_END = 10**12
"""Seeds that leave a published figure's own error alone."""

_SETTLED = (CONFIRMED, REFUTED, NOT_REACHED)


@dataclass(frozen=True)
class Question:
    """Whether the truth is between two limits.

    Attributes
    ----------
    estimate : Estimate or None
        None: nothing was run yet.
    low, high : float
        May be infinite.
    unpublished : str
        Settings that it hangs on and that are not published.
    """

    estimate: Estimate | None
    low: float
    high: float
    unpublished: str = ""

    @property
    def is_decidable(self) -> bool:
        """Whether there are seeds enough: methods that share them are no substitute for them."""
        one = self.estimate
        return one is not None and one.freedom > 0 and one.count >= FEWEST

    @property
    def outside_p(self) -> float:
        """P-value of a truth outside the limits; 1 where nothing tells it."""
        if (one := self.estimate) is None:
            return 1.0
        return max(one.tail(one.mean - self.low), one.tail(self.high - one.mean))

    @property
    def inside_p(self) -> float:
        """P-value of a truth at the nearer limit, by either side; 1 where nothing tells it."""
        if (one := self.estimate) is None:
            return 1.0
        distance = max(self.low - one.mean, one.mean - self.high)
        return min(1.0, one.tail(distance) + one.tail(distance + self.high - self.low))


@dataclass(frozen=True)
class Judgement:
    """An answer, and the one that would be given without correction.

    ``confirmed``: the truth is surely between the limits; ``refuted``: surely not, and the settings are
    published; ``not reached at these settings``: surely not, and they are not; ``undecided at n seeds``;
    ``not run``: no runs; ``depends on the reading``: see `together`.

    Attributes
    ----------
    corrected, plain : str
    needed : str
        How many seeds an undecided question would take; blank where nothing tells it.
    """

    corrected: str
    plain: str
    needed: str = ""

    def __str__(self) -> str:
        if self.corrected in (CONFIRMED, REFUTED, NOT_REACHED, DEPENDS):
            return f"**{self.corrected}**"
        text = f"{self.corrected}, {self.needed}" if self.needed else self.corrected
        return text if self.plain == self.corrected else f"{text} (alone: {self.plain})"


def judge(questions: Sequence[Question]) -> list[Judgement]:
    """Judge a family of questions: `LEVEL` is the chance of even one false confirmation, or false refutation.

    Confirmed are those where both one-sided tests reject a truth outside the
    limits, refuted those where the test of a truth between them rejects; the
    p-values of either kind are adjusted for the number of questions that have
    an interval and seeds enough.
    """
    found = [_undecided(question) for question in questions]
    asked = [place for place, question in enumerate(questions) if question.is_decidable]
    outside, inside = ([getattr(questions[at], name) for at in asked] for name in ("outside_p", "inside_p"))
    for place, *p_values in zip(asked, holm(outside), holm(inside), outside, inside, strict=True):
        words = (CONFIRMED, refusal(questions[place].unpublished), found[place].corrected)
        found[place] = Judgement(_answer(p_values[:2], words), _answer(p_values[2:], words))
    undecided = [place for place, answer in enumerate(found) if answer.corrected not in (*_SETTLED, NOT_RUN)]
    for place in undecided:
        found[place] = replace(found[place], needed=_needed(questions[place], LEVEL / len(undecided)))
    return found


def _needed(question: Question, level: float) -> str:
    """Return how many seeds would decide a question at a level, if figure and spread stay as they are."""
    one = question.estimate
    if one is None or not one.freedom:
        return f"at least {FEWEST} needed"

    def decides(count: int) -> bool:
        later = replace(question, estimate=one.after(count))
        return min(later.outside_p, later.inside_p) <= level

    if not decides(MOST_SEEDS):
        return f"more than {MOST_SEEDS:,} needed" if decides(_WITHOUT_END) else "no number is enough"
    counts = range(max(one.count + 1, FEWEST), MOST_SEEDS + 1)
    return f"about {counts[bisect_left(counts, True, key=decides)]} needed"


def together(answers: Sequence[Judgement]) -> Judgement:
    """Return what readings of one statement say: what all say, or that it hangs on the reading, if so."""
    corrected, plain = ([getattr(each, name) for each in answers] for name in ("corrected", "plain"))
    unsettled = next((each for each in (*plain, *corrected) if each not in _SETTLED), "")
    needed = next((each.needed for each in answers if unsettled in (each.plain, each.corrected)), "")
    return Judgement(_together(corrected) or unsettled, _together(plain) or unsettled, needed)


def refusal(unpublished: str) -> str:
    """Return the word for what is surely not so, given the settings that are not published."""
    return NOT_REACHED if unpublished else REFUTED


def counts(answers: Sequence[str], refused: str) -> dict[str, int]:
    """Return how many answers are surely not so (in the word given), confirmed, undecided, not run."""
    shown = (refused, CONFIRMED, *[DEPENDS] * (DEPENDS in answers))
    known, nothing = {word: answers.count(word) for word in shown}, answers.count(NOT_RUN)
    return {**known, "undecided": len(answers) - sum(known.values()) - nothing, NOT_RUN: nothing}


def in_words(answers: Sequence[str], refused: str) -> str:
    """Return these counts as text."""
    return ", ".join(f"{count} {word}" for word, count in counts(answers, refused).items())


def _together(answers: Sequence[str]) -> str:
    """Return what settled answers say together; blank where one is not, and they differ."""
    if len(set(answers)) == 1:
        return answers[0]
    return DEPENDS if CONFIRMED in answers and {REFUTED, NOT_REACHED} & set(answers) else ""


def _undecided(question: Question) -> Judgement:
    if question.estimate is None:
        return Judgement(NOT_RUN, NOT_RUN)
    count = question.estimate.count
    text = f"undecided at {count} seed{'s' if count > 1 else ''}"
    return Judgement(text, text)


def _answer(p_values: Sequence[float], words: tuple[str, str, str]) -> str:
    """Return the word for what is rejected: a truth outside the limits, one between them, neither."""
    return next((word for p, word in zip(p_values, words, strict=False) if p <= LEVEL), words[-1])
