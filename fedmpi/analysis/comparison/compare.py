"""Compares sides with the first one: what is valid, what is alike, by how much figures differ, checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.comparison.merits import Ratio, ratios, unit_of
from fedmpi.analysis.comparison.outcomes import Side
from fedmpi.analysis.comparison.pairs import SPEED, Pair, pair
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Allowance:
    """How much worse than the reference is still accepted.

    Attributes
    ----------
    amount : float
        Share of 1 for points, share of the reference's value if relative, else in the score's own unit.
    unit : str
        "points", "relative" or "absolute".
    given : str
        What the user wrote, for messages; empty for a default.
    """

    amount: float
    unit: str
    given: str = ""

    def check(self, judged: Metric) -> None:
        """Raise BadInput where points are allowed of a score that has none."""
        if self.unit == "points" and not judged.bounded:
            advice = "give a percentage of the reference's, such as 1%, or a number in the labels' unit"
            raise BadInput(f"{self.given}: {judged.title} has no points; {advice}")

    def of(self, reference: float) -> float:
        """Return the largest loss beside a reference's value."""
        return self.amount * (abs(reference) if self.unit == "relative" else 1.0) + _ROUNDING

    def text(self, judged: Metric) -> str:
        """Return it as it stands behind a difference."""
        if self.unit == "relative":
            return f"{100 * self.amount:g} %"
        return f"{judged.scale * self.amount:g}"


def too_bad(judged: Metric, allowed: Allowance | None, first: float, second: float) -> str:
    """Return in words why the second value is too bad beside the first; empty if it is not.

    Parameters
    ----------
    allowed : Allowance or None
        None: a point; of a score in the labels' unit 1 % of the reference's.
    first, second : float
        A NaN is never good enough.
    """
    allowed = allowed or Allowance(0.01, "points" if judged.bounded else "relative")
    most, loss = allowed.of(first), judged.sign * (first - second)
    if math.isnan(loss):
        return f"no {judged.title} of both sides, so none to judge by"
    if loss <= most:
        return ""
    way = "below" if judged.higher else "above"
    size = f"{judged.shown(loss)}{judged.points}"
    return f"{judged.title} {size} {way} the reference ({allowed.text(judged)} allowed)"


@dataclass(frozen=True)
class Limits:
    """What is asked of the second side.

    Attributes
    ----------
    target : float or None
        Value of the headline on validation data that every run must reach.
    tolerance : Allowance or None
        Without a target: how much worse its headline may be than the first side's. None: a point, or 1 %
        of what has no points.
    slower : float or None
        Largest relative slowdown before a check fails.
    less_accurate : Allowance or None
        Largest loss of the headline before a check fails.
    """

    target: float | None = None
    tolerance: Allowance | None = None
    slower: float | None = None
    less_accurate: Allowance | None = None


@dataclass(frozen=True)
class CaseResult:
    """All pairs of a dataset and algorithm.

    Attributes
    ----------
    invalid : tuple of str
        Why the second side's speed does not count; empty where it is valid.
    ratios : list of Ratio
        Speed only if valid.
    """

    dataset: str
    algorithm: str
    pairs: tuple[Pair, ...]
    invalid: tuple[str, ...]
    ratios: tuple[Ratio, ...]


@dataclass(frozen=True)
class Check:
    """A limit that was asked for, and what came of it."""

    passed: bool
    text: str


@dataclass(frozen=True)
class Comparison:
    """The second side against the first."""

    first: Side
    second: Side
    cases: tuple[CaseResult, ...]
    overall: tuple[Ratio, ...]
    left_out: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def valid(self) -> bool:
        """Whether there is a pair and nothing is invalid."""
        return bool(self.cases) and not any(case.invalid for case in self.cases)


def compare(
    first: Side, second: Side, limits: Limits, by: str | None = None, any_ranks: bool = False
) -> Comparison:
    """Compare two sides, which differ in the setting `by` alone where that is given.

    With `any_ranks` another number of ranks spoils no figure.

    Raises
    ------
    BadInput
        A limit is in points of a score that has none.
    """
    found, left_out = pair(first, second, by, any_ranks)
    for judged in _headlines(found):
        for allowed in (limits.tolerance, limits.less_accurate):
            if allowed is not None:
                allowed.check(judged)
    left_out += [
        f"{run.folder}: {run.status}, so not compared{': ' + run.reason if run.reason else ''}"
        for each in found
        for run in (each.first, each.second)
        if run.status != "complete"
    ]
    groups = grouped(found, lambda each: each.case)
    cases = tuple(_case(names, pairs, limits) for names, pairs in groups.items())
    counted = [each for case in cases for each in _counted(case.pairs)]
    speedy = _speedy(cases)
    unit = unit_of(counted)
    overall = _merged(ratios(counted, unit), ratios(speedy, unit))
    if len({case.dataset for case in cases}) > 1:
        overall = tuple(each for each in overall if not each.merit.of_labels)
    return Comparison(first, second, cases, overall, tuple(left_out), _checks(cases, overall, limits))


def _counted(pairs: Sequence[Pair]) -> list[Pair]:
    return [each for each in pairs if each.first.status == each.second.status == "complete"]


def _speedy(cases: Sequence[CaseResult]) -> list[Pair]:
    """Return the pairs whose speed counts."""
    return [each for case in cases if not case.invalid for each in _counted(case.pairs)]


def _case(names: tuple[str, str], pairs: Sequence[Pair], limits: Limits) -> CaseResult:
    invalid = tuple(_invalid(pairs, limits))
    counted = _counted(pairs)
    found = ratios(counted, unit_of(counted))
    return CaseResult(*names, tuple(pairs), invalid, _merged(found, () if invalid else found))


def _merged(complete: Sequence[Ratio], valid: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Return figures of speed from the second, of valid pairs, all others from the first."""
    speed = {each.merit: each for each in valid}
    found = (speed.get(each.merit) if each.merit.kind == SPEED else each for each in complete)
    return tuple(filter(None, found))


def _invalid(pairs: Sequence[Pair], limits: Limits) -> list[str]:
    """Return why the second side's runs of a case are no valid results."""
    lines = []
    broken = [each.second.status for each in pairs if each.second.status != "complete"]
    if broken:
        states = ", ".join(dict.fromkeys(broken))
        lines.append(f"{len(broken)} of {len(pairs)} runs are not complete ({states})")
    counted = _counted(pairs)
    if all(each.refused for each in counted or pairs):
        lines.append("no pair is like for like")
    elif not counted and not broken:
        lines.append("no counterpart is complete")
    if limits.target is not None:
        if short := sum(not each.second.reached for each in counted):
            lines.append(f"{short} of {len(counted)} runs never reached the target {limits.target:g}")
        return lines
    judged = [each for each in counted if not each.refused]
    said = [too_bad(metric, limits.tolerance, *_means(judged, metric)) for metric in _headlines(judged)]
    return lines + list(filter(None, said))


def _headlines(pairs: Sequence[Pair]) -> list[Metric]:
    """Return by what the first side's runs are judged; runs of one dataset usually by one metric."""
    return list(dict.fromkeys(each.first.headline for each in pairs))


def _means(pairs: Sequence[Pair], metric: Metric) -> tuple[float, float]:
    """Return both sides' means over the pairs judged by a metric; NaN if a run lacks it."""
    runs = [(each.first, each.second) for each in pairs if each.first.headline == metric]
    values = [[run.figures.get(metric.field(), math.nan) for run in both] for both in runs]
    first, second = map(np.mean, zip(*values, strict=True))
    return float(first), float(second)


def _checks(cases: Sequence[CaseResult], overall: Sequence[Ratio], limits: Limits) -> tuple[Check, ...]:
    checks = []
    if limits.slower is not None or limits.less_accurate is not None:
        wrong = [f"{_named(case)}{line}" for case in cases for line in case.invalid]
        checks += [Check(False, f"INVALID: {line}") for line in wrong]
    if limits.slower is not None:
        name = "round_seconds_median" if limits.target is None else "seconds_to_target"
        known = (each for each in overall if each.merit.name == name and each.flagged < each.pairs)
        checks.append(_slower(next(known, None), limits.slower, cases))
    if limits.less_accurate is not None:
        checks += _less_accurate(cases, overall, limits.less_accurate)
    return tuple(checks)


def _slower(found: Ratio | None, limit: float, cases: Sequence[CaseResult]) -> Check:
    if found is None or math.isnan(found.ratio):
        pairs = _speedy(cases)
        ranks = bool(pairs) and all(each.first.ranks != each.second.ranks for each in pairs)
        advice = " (--any-ranks allows other numbers of ranks)" * ranks
        return Check(False, f"speed: no valid pair that is like for like{advice}, so the check cannot pass")
    change = 100 * (found.ratio - 1)
    what = f"{found.merit.title}: {change:+.1f} % ({100 * limit:g} % allowed), {found.pairs} pairs"
    return Check(found.ratio <= 1 + limit, what)


def _less_accurate(
    cases: Sequence[CaseResult], overall: Sequence[Ratio], allowed: Allowance
) -> Iterator[Check]:
    """Yield a check of every headline of the runs; of one in the labels' unit for each case."""
    headlines = _headlines([each for case in cases for each in case.pairs])
    if not headlines:
        yield Check(False, "accuracy: no pair, so the check cannot pass")
    for judged in headlines:
        shared = judged.unit != "label"
        groups = [("", overall)] if shared else [(_named(case), case.ratios) for case in cases]
        for name, found in groups:
            ratio = next((each for each in found if each.merit.name == judged.field()), None)
            if ratio is not None or shared:
                yield _loss(judged, ratio, allowed, name if len(cases) > 1 else "")


def _named(case: CaseResult) -> str:
    return f"{case.dataset}, {case.algorithm}: "


def _loss(judged: Metric, found: Ratio | None, allowed: Allowance, name: str) -> Check:
    if found is None or found.flagged == found.pairs:
        return Check(False, f"{name}{judged.title}: no pair that is like for like, so the check cannot pass")
    bad = bool(too_bad(judged, allowed, found.first, found.second))
    change = f"{judged.shown(found.difference, signed=True)}{judged.points}"
    limit = f"{'-' if judged.higher else '+'}{allowed.text(judged)}"
    return Check(not bad, f"{name}{found.merit.title}: {change} ({limit} allowed), {found.pairs} pairs")
