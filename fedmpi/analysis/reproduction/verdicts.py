"""What a paper claims about its tables, each claim under each selection rule, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedmpi.analysis.reproduction import measures
from fedmpi.analysis.reproduction.cells import MARGIN
from fedmpi.analysis.reproduction.judgement import Judgement, Question, judge
from fedmpi.analysis.reproduction.published import Claim, Published
from fedmpi.analysis.reproduction.results import Key, Results
from fedmpi.analysis.reproduction.tables import markdown, method, signed
from fedmpi.analysis.rows import RULES
from fedmpi.errors import BadInput


@dataclass(frozen=True)
class Verdict:
    """A claim judged.

    Attributes
    ----------
    claim : Claim
    published : str
        What the paper's tables print about it.
    against : Key
        What it is measured against.
    seeds : int
        Repetitions behind ours.
    shown : dict
        Our figure by selection rule.
    judged : dict
        By selection rule.
    """

    claim: Claim
    published: str
    against: Key
    seeds: int
    shown: Mapping[str, str]
    judged: Mapping[str, Judgement]


def verdicts(claims: Sequence[Claim], figures: Sequence[Published], results: Results) -> list[Verdict]:
    """Judge claims; a family are those of one kind, and of one reading of a table, under one rule.

    A lead is confirmed where ours is surely no more than the margin below the
    published one, or below none where cases are only said to be as good. A number
    of improved clients is confirmed where ours is surely less than a client off.

    Raises
    ------
    BadInput
        A lead or a number of clients is claimed of a cell that no table prints.
    """
    asked = {claim: _questions(claim, figures, results) for claim in claims}
    judged: dict[Claim, dict[str, Judgement]] = {claim: {} for claim in claims}
    for family in dict.fromkeys(map(_family, claims)):
        members = [claim for claim in claims if _family(claim) == family]
        for rule in RULES:
            answers = judge([asked[claim][rule][0] for claim in members])
            for claim, answer in zip(members, answers, strict=True):
                judged[claim][rule] = answer
    found = []
    for claim, questions in asked.items():
        against = results.one(claim.suite, claim.against)[0].key
        counts = [question.estimate.count for question, _ in questions.values() if question.estimate]
        shown = {rule: text for rule, (_, text) in questions.items()}
        printed = _printed(claim, figures)
        found.append(Verdict(claim, printed, against, max(counts, default=0), shown, judged[claim]))
    return found


def _family(claim: Claim) -> tuple[str, str]:
    return claim.kind, claim.suite if claim.kind == "reread" else ""


def verdict_table(found: Sequence[Verdict]) -> str:
    """Return the verdicts, a line per claim."""
    headings = ["claim", "against", "published", "seeds"]
    for rule in RULES:
        headings += [rule, "verdict"]
    rows = []
    for each in found:
        cells = [each.claim.claim, method(each.against), each.published, str(each.seeds)]
        for rule in RULES:
            cells += [each.shown[rule], str(each.judged[rule])]
        rows.append(cells)
    return markdown(headings, rows)


def published_lead(claim: Claim, figures: Sequence[Published]) -> float:
    """Return the difference of the printed averages."""
    ours, other = (_figure(figures, claim.suite, cases, "average") for cases in (claim.cases, claim.against))
    return ours.value - other.value


def _questions(
    claim: Claim, figures: Sequence[Published], results: Results
) -> dict[str, tuple[Question, str]]:
    """Return by selection rule what is asked, and our figure as text."""
    ours, other = (results.one(claim.suite, cases)[0] for cases in (claim.cases, claim.against))
    found = {}
    for rule, column in RULES.items():
        if claim.kind in ("lead", "reread", "level"):
            lead = measures.lead(ours, other, column)
            least = (0.0 if claim.kind == "level" else published_lead(claim, figures)) - MARGIN
            found[rule] = (Question(lead, least, math.inf), signed(lead))
            continue
        gains = measures.gains(ours, other, column)
        share = _figure(figures, claim.suite, claim.cases, "ratio").value
        if gains is None:
            found[rule] = (Question(None, share, share), "-")
        else:
            step = 1 / gains.clients
            found[rule] = (Question(gains.improved, share - step, share + step), gains.ratio)
    return found


def _printed(claim: Claim, figures: Sequence[Published]) -> str:
    if claim.kind == "level":
        return "at least +0"
    if claim.kind == "improved":
        return _figure(figures, claim.suite, claim.cases, "ratio").printed
    ours, other = (_figure(figures, claim.suite, cases, "average") for cases in (claim.cases, claim.against))
    return f"{ours.value - other.value:+.4f} ({ours.printed} against {other.printed})"


def _figure(figures: Sequence[Published], suite: str, cases: str, metric: str) -> Published:
    for each in figures:
        if (each.suite, each.cases, each.metric) == (suite, cases, metric):
            return each
    raise BadInput(f"{suite} {cases}: a claim about it, but no published {metric}")
