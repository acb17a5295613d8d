"""What a person sees of claims that are being decided: seeds to be expected, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.cli.plain_table import PlainTable
from fedmpi.judging.estimates import LEVEL, Estimate
from fedmpi.judging.judgement import Question
from fedmpi.reproduction.deciding import Design, Standing, expected

_EVEN, _LIKELY = 0.5, 0.8
_SPENDINGS = {"pocock": "Pocock's type", "obrien-fleming": "O'Brien and Fleming's type"}
_UNITS = "Figures are differences of accuracies or scores, parts of an average, or shares of clients."


def expectation_table(found: Sequence[Standing], design: Design) -> PlainTable:
    """Return how many seeds each claim is expected to take, by the figures at hand."""
    headings = ["claim", "against", "confirmed if", "verdict", "ours", "std", "seeds"]
    headings += ["even chance", "80 %"]
    table = PlainTable(
        "Seeds to be expected", headings, 4, ("std", "against", "confirmed if"), wrapped=("claim",)
    )
    for each in found:
        question = each.asked.question
        seeds = ["-", "-"] if each.verdict else [_seeds(each, design, power) for power in (_EVEN, _LIKELY)]
        names = [_name(each), each.posed.claim.against, _limits(question), each.verdict or "undecided"]
        table.add_line(*names, *_figures(question.estimate), each.seeds, *seeds)
    table.caption = (
        f"Seeds until a claim is decided with an even chance and with 80 %, if figure and spread stay as "
        f"now; at most {design.max_seeds} are run. {_UNITS}"
    )
    return table


def verdict_table(found: Sequence[Standing], design: Design, reasons: Sequence[str]) -> PlainTable:
    """Return what became of the claims; `reasons` say why undecided ones were not followed further."""
    headings = ["claim", "verdict", "seeds still needed", "ours", "95 % interval", "limits", "seeds", "looks"]
    table = PlainTable("Claims", headings, 3, ("limits", "looks"), wrapped=("claim", "seeds still needed"))
    for each, reason in zip(found, reasons, strict=True):
        question = each.asked.question
        needed = "-" if each.verdict else _needed(each, design, reason)
        figures = [_figures(question.estimate)[0], _interval(question.estimate), _limits(question)]
        table.add_line(_name(each), each.verdict or "undecided", needed, *figures, each.seeds, each.looks)
    decided = sum(bool(each.verdict) for each in found)
    table.caption = (
        f"{decided} of {len(found)} claims decided. Looked at after every seed: {LEVEL:.0%} is spent by "
        f"{_SPENDINGS[design.spending]} (Lan and DeMets), after Holm over the claims of a kind and source. "
        f"Intervals are each claim's own. {_UNITS}"
    )
    return table


def _name(standing: Standing) -> str:
    """Return a claim's words, and what it is not the plain reading of."""
    claim = standing.posed.claim
    parts = [claim.source if claim.source == "equal work" else "", claim.reading]
    return ", ".join([claim.claim, *filter(None, parts)])


def _figures(one: Estimate | None) -> list[str]:
    """Return our figure, and its standard deviation between seeds."""
    if one is None:
        return ["-", "-"]
    return [f"{one.mean:+.4f}", f"{one.std:.4f}" if one.freedom else "-"]


def _interval(one: Estimate | None) -> str:
    if one is None or math.isnan(one.half):
        return "-"
    return f"{one.mean - one.half:+.4f} to {one.mean + one.half:+.4f}"


def _limits(question: Question) -> str:
    if math.isinf(question.high):
        return f"at least {question.low:+.4f}"
    return f"{question.low:+.4f} to {question.high:+.4f}"


def _seeds(standing: Standing, design: Design, power: float) -> str:
    """Return after how many seeds a claim is decided with some probability."""
    one = standing.asked.question.estimate
    if one is None or not one.freedom:
        return "unknown"
    count = expected(standing, design, power)
    if count is None:
        return "at the limit"
    most = max(design.looks(standing.posed))
    if count == most + 1:
        return f"over {most}"
    return str(count) if count <= most else f"about {count:,}"


def _needed(standing: Standing, design: Design, reason: str) -> str:
    """Return how many seeds are still to be expected, and why a claim was not followed further."""
    one = standing.asked.question.estimate
    count = expected(standing, design, _LIKELY)
    if one is None or not one.freedom:
        text = "unknown: too few runs"
    elif count is None:
        text = "our figure is at the limit"
    else:
        text = f"about {count - standing.seeds:,} more"
    return f"{text} ({reason})" if reason else text
