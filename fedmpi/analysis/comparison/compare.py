"""Compares sides with the first one: what is valid, what is alike, by how much figures differ, checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.comparison.merits import Ratio, ratios
from fedmpi.analysis.comparison.outcomes import Side
from fedmpi.analysis.comparison.pairs import Pair, pair


@dataclass(frozen=True)
class Limits:
    """What is asked of the second side.

    Attributes
    ----------
    target : float or None
        Validation accuracy that every run must reach.
    tolerance : float
        Without a target: how far, as a share of 1, its accuracy may be below the first side's.
    slower, less_accurate : float or None
        Largest relative slowdown and largest loss of accuracy (share of 1) before a check fails.
    """

    target: float | None = None
    tolerance: float = 0.01
    slower: float | None = None
    less_accurate: float | None = None


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


def compare(first: Side, second: Side, limits: Limits) -> Comparison:
    """Compare two sides."""
    found, left_out = pair(first, second)
    groups: dict[tuple[str, str], list[Pair]] = {}
    for each in found:
        groups.setdefault(each.case, []).append(each)
        left_out += _unfinished(each)
    cases = tuple(_case(names, pairs, limits) for names, pairs in groups.items())
    counted = [each for case in cases for each in _counted(case.pairs)]
    speedy = [each for case in cases if not case.invalid for each in _counted(case.pairs)]
    overall = _merged(ratios(counted), ratios(speedy))
    return Comparison(first, second, cases, overall, tuple(left_out), _checks(cases, overall, limits))


def _unfinished(each: Pair) -> list[str]:
    return [
        f"{run.folder}: {run.status}, so not compared{': ' + run.reason if run.reason else ''}"
        for run in (each.first, each.second)
        if run.status != "complete"
    ]


def _counted(pairs: Sequence[Pair]) -> list[Pair]:
    return [each for each in pairs if each.first.status == each.second.status == "complete"]


def _case(names: tuple[str, str], pairs: Sequence[Pair], limits: Limits) -> CaseResult:
    invalid = tuple(_invalid(pairs, limits))
    accuracy = ratios(_counted(pairs))
    return CaseResult(*names, tuple(pairs), invalid, _merged(accuracy, () if invalid else accuracy))


def _merged(accuracy: Sequence[Ratio], speed: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Return figures of accuracy from the first, all others from the second."""
    kept = [each for each in accuracy if each.merit.kind == "accuracy"]
    return (*kept, *(each for each in speed if each.merit.kind != "accuracy"))


def _invalid(pairs: Sequence[Pair], limits: Limits) -> list[str]:
    """Return why the second side's runs of a case are no valid results."""
    lines = []
    broken = [each for each in pairs if each.second.status != "complete"]
    if broken:
        states = ", ".join(dict.fromkeys(each.second.status for each in broken))
        lines.append(f"{len(broken)} of {len(pairs)} runs are not complete ({states})")
    counted = _counted(pairs)
    if counted and all(each.refused for each in counted):
        lines.append("no pair is like for like")
    if limits.target is not None:
        short = sum(not each.second.reached for each in counted)
        if short:
            lines.append(f"{short} of {len(counted)} runs never reached the target {limits.target:g}")
        return lines
    gaps = [_accuracy_gap(each) for each in counted if not each.refused]
    gap = float(np.mean(gaps)) if gaps else math.nan
    if gap < -limits.tolerance - 1e-12:
        allowed = f"{100 * limits.tolerance:g} allowed"
        lines.append(f"accuracy {-100 * gap:.2f} points below the reference ({allowed})")
    return lines


def _accuracy_gap(each: Pair) -> float:
    return each.second.figures["test_accuracy"] - each.first.figures["test_accuracy"]


def _checks(cases: Sequence[CaseResult], overall: Sequence[Ratio], limits: Limits) -> tuple[Check, ...]:
    checks = []
    if limits.slower is not None or limits.less_accurate is not None:
        wrong = [f"{case.dataset}, {case.algorithm}: {line}" for case in cases for line in case.invalid]
        checks += [Check(False, f"INVALID: {line}") for line in wrong]
    by_name = {each.merit.name: each for each in overall if each.flagged < each.pairs}
    if limits.slower is not None:
        name = "round_seconds_median" if limits.target is None else "seconds_to_target"
        checks.append(_slower(by_name.get(name), limits.slower))
    if limits.less_accurate is not None:
        checks.append(_less_accurate(by_name.get("test_accuracy"), limits.less_accurate))
    return tuple(checks)


def _slower(found: Ratio | None, limit: float) -> Check:
    if found is None or math.isnan(found.ratio):
        return Check(False, "speed: no valid pair that is like for like, so the check cannot pass")
    change = 100 * (found.ratio - 1)
    what = f"{found.merit.title}: {change:+.1f} % ({100 * limit:g} % allowed), {found.pairs} pairs"
    return Check(found.ratio <= 1 + limit, what)


def _less_accurate(found: Ratio | None, limit: float) -> Check:
    if found is None:
        return Check(False, "accuracy: no pair that is like for like, so the check cannot pass")
    change = 100 * found.difference
    what = f"{found.merit.title}: {change:+.2f} points ({-100 * limit:g} allowed), {found.pairs} pairs"
    return Check(found.difference >= -limit - 1e-12, what)
