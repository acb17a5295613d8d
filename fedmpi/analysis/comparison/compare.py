"""Compares sides with the first one: what is valid, what is alike, by how much figures differ, checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.comparison.judging import Allowance, too_bad
from fedmpi.analysis.comparison.merits import Ratio, ratios, unit_of
from fedmpi.analysis.comparison.outcomes import Side
from fedmpi.analysis.comparison.pairs import Pair, pair
from fedmpi.metrics.metric import Metric


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
    left_out += [line for each in found for line in _unfinished(each)]
    groups = grouped(found, lambda each: each.case)
    cases = tuple(_case(names, pairs, limits) for names, pairs in groups.items())
    counted = [each for case in cases for each in _counted(case.pairs)]
    speedy = _speedy(cases)
    unit = unit_of(counted)
    overall = _alike(cases, _merged(ratios(counted, unit), ratios(speedy, unit)))
    return Comparison(first, second, cases, overall, tuple(left_out), _checks(cases, overall, limits))


def _unfinished(each: Pair) -> list[str]:
    return [
        f"{run.folder}: {run.status}, so not compared{': ' + run.reason if run.reason else ''}"
        for run in (each.first, each.second)
        if run.status != "complete"
    ]


def _counted(pairs: Sequence[Pair]) -> list[Pair]:
    return [each for each in pairs if each.first.status == each.second.status == "complete"]


def _speedy(cases: Sequence[CaseResult]) -> list[Pair]:
    """Return the pairs whose speed counts."""
    return [each for case in cases if not case.invalid for each in _counted(case.pairs)]


def _case(names: tuple[str, str], pairs: Sequence[Pair], limits: Limits) -> CaseResult:
    invalid = tuple(_invalid(pairs, limits))
    counted = _counted(pairs)
    accuracy = ratios(counted, unit_of(counted))
    return CaseResult(*names, tuple(pairs), invalid, _merged(accuracy, () if invalid else accuracy))


def _merged(accuracy: Sequence[Ratio], speed: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Return figures of accuracy from the first, all others from the second."""
    kept = [each for each in accuracy if each.merit.kind == "accuracy"]
    return (*kept, *(each for each in speed if each.merit.kind != "accuracy"))


def _alike(cases: Sequence[CaseResult], found: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Leave out figures in the labels' unit, if the cases are of several datasets."""
    several = len({case.dataset for case in cases}) > 1
    return tuple(each for each in found if not (several and each.merit.of_labels))


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
    return list(dict.fromkeys(each.first.metrics[0] for each in pairs))


def _means(pairs: Sequence[Pair], metric: Metric) -> tuple[float, float]:
    """Return both sides' means over the pairs judged by a metric; NaN if a run lacks it."""
    chosen = [each for each in pairs if each.first.metrics[0] == metric]
    sides = [each.first for each in chosen], [each.second for each in chosen]
    first, second = (np.mean([run.figures.get(metric.field(), math.nan) for run in side]) for side in sides)
    return float(first), float(second)


def _checks(cases: Sequence[CaseResult], overall: Sequence[Ratio], limits: Limits) -> tuple[Check, ...]:
    checks = []
    if limits.slower is not None or limits.less_accurate is not None:
        wrong = [f"{_named(case)}{line}" for case in cases for line in case.invalid]
        checks += [Check(False, f"INVALID: {line}") for line in wrong]
    by_name = {each.merit.name: each for each in overall if each.flagged < each.pairs}
    if limits.slower is not None:
        name = "round_seconds_median" if limits.target is None else "seconds_to_target"
        checks.append(_slower(by_name.get(name), limits.slower, cases))
    if limits.less_accurate is not None:
        checks += _less_accurate(cases, overall, limits.less_accurate)
    return tuple(checks)


def _slower(found: Ratio | None, limit: float, cases: Sequence[CaseResult]) -> Check:
    if found is None or math.isnan(found.ratio):
        return Check(False, f"speed: {_no_pair(cases)}, so the check cannot pass")
    change = 100 * (found.ratio - 1)
    what = f"{found.merit.title}: {change:+.1f} % ({100 * limit:g} % allowed), {found.pairs} pairs"
    return Check(found.ratio <= 1 + limit, what)


def _no_pair(cases: Sequence[CaseResult]) -> str:
    """Return why no speed can be judged; where it is for the ranks, what allows these."""
    pairs = _speedy(cases)
    ranks = bool(pairs) and all(each.first.ranks != each.second.ranks for each in pairs)
    advice = " (--any-ranks allows other numbers of ranks)" if ranks else ""
    return f"no valid pair that is like for like{advice}"


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
