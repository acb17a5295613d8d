"""What a person sees of claims that are being decided: seeds to be expected, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from fedmpi.judging.estimates import LEVEL
from fedmpi.reproduction.deciding import Design, Standing, expected
from fedmpi.tables.table import Column, Entry, Table, number

_EVEN, _LIKELY = 0.5, 0.8
_SPENDINGS = {"pocock": "Pocock's type", "obrien-fleming": "O'Brien and Fleming's type"}
_UNITS = "Figures are differences of accuracies or scores, parts of an average, or shares of clients."


def expectation_table(found: Sequence[Standing], design: Design) -> Table[Standing]:
    """Return how many seeds each claim is expected to take, by the figures at hand."""
    columns: list[Column[Standing]] = [
        Column("claim", _name, wrapped=True),
        Column("against", attrgetter("posed.claim.against"), spare=2),
        Column("confirmed if", _limits, spare=1),
        Column("verdict", _verdict),
        Column("ours", _ours),
        Column("std", _std, spare=3),
        Column("seeds", attrgetter("seeds")),
        Column("even chance", lambda each: _seeds(each, design, _EVEN), numeric=True),
        Column("80 %", lambda each: _seeds(each, design, _LIKELY), numeric=True),
    ]
    note = (
        f"Seeds until a claim is decided with an even chance and with 80 %, if figure and spread stay as "
        f"now; at most {design.max_seeds} are run. {_UNITS}"
    )
    return Table(columns, found, "Seeds to be expected", [note])


def verdict_table(found: Sequence[Standing], design: Design, reasons: Sequence[str]) -> Table[Standing]:
    """Return what became of the claims; `reasons` say why undecided ones were not followed further."""
    why = dict(zip(map(id, found), reasons, strict=True))
    columns: list[Column[Standing]] = [
        Column("claim", _name, wrapped=True),
        Column("verdict", _verdict),
        Column("seeds still needed", lambda each: _needed(each, design, why[id(each)]), wrapped=True),
        Column("ours", _ours),
        Column("95 % interval", _interval, numeric=True),
        Column("limits", _limits, numeric=True, spare=2),
        Column("seeds", attrgetter("seeds")),
        Column("looks", attrgetter("looks"), spare=1),
    ]
    decided = sum(bool(each.verdict) for each in found)
    note = (
        f"{decided} of {len(found)} claims decided. Looked at after every seed: {LEVEL:.0%} is spent by "
        f"{_SPENDINGS[design.spending]} (Lan and DeMets), after Holm over the claims of a kind and source. "
        f"Intervals are each claim's own. {_UNITS}"
    )
    return Table(columns, found, "Claims", [note])


def _name(standing: Standing) -> str:
    """Return a claim's words, and what it is not the plain reading of."""
    claim = standing.posed.claim
    source = claim.source if claim.source == "equal work" else ""
    return ", ".join(filter(None, (claim.claim, source, claim.reading)))


def _verdict(standing: Standing) -> str:
    return standing.verdict or "undecided"


def _ours(standing: Standing) -> Entry | None:
    """Return our figure."""
    one = standing.question.estimate
    return None if one is None else number(one.mean, 4, sign="+")


def _std(standing: Standing) -> Entry | None:
    """Return the standard deviation of our figure between seeds."""
    one = standing.question.estimate
    return number(one.std, 4) if one and one.freedom else None


def _interval(standing: Standing) -> str | None:
    one = standing.question.estimate
    if one is None or math.isnan(one.half):
        return None
    return f"{one.mean - one.half:+.4f} to {one.mean + one.half:+.4f}"


def _limits(standing: Standing) -> str:
    question = standing.question
    if math.isinf(question.high):
        return f"at least {question.low:+.4f}"
    return f"{question.low:+.4f} to {question.high:+.4f}"


def _seeds(standing: Standing, design: Design, power: float) -> str | None:
    """Return after how many seeds a claim is decided with some probability; None where it is."""
    one = standing.question.estimate
    if standing.verdict:
        return None
    if one is None or not one.freedom:
        return "unknown"
    count = expected(standing, design, power)
    if count is None:
        return "at the limit"
    most = max(design.looks(standing.posed))
    if count == most + 1:
        return f"over {most}"
    return str(count) if count <= most else f"about {count:,}"


def _needed(standing: Standing, design: Design, reason: str) -> str | None:
    """Return how many seeds are still to be expected, and why a claim was not followed further."""
    if standing.verdict:
        return None
    one = standing.question.estimate
    count = expected(standing, design, _LIKELY)
    if one is None or not one.freedom:
        text = "unknown: too few runs"
    elif count is None:
        text = "our figure is at the limit"
    else:
        text = f"about {count - standing.seeds:,} more"
    return f"{text} ({reason})" if reason else text
