"""Figures of merit, their directions, and their ratios with intervals over pairs, cases or datasets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.comparison.pairs import ACCURACY, SPEED, WORK, Pair
from fedmpi.analysis.scores import RULES, rules
from fedmpi.judging.estimates import FEWEST, Estimate, estimate
from fedmpi.metrics.metric import Better, Metric


@dataclass(frozen=True)
class Merit:
    """One figure of merit: its name in docs/metrics.md, its title, direction, kind, digits, factor.

    `of_labels`: whether it has the labels' unit, so that no mean over datasets has a meaning.
    """

    name: str
    title: str
    better: Better
    kind: str
    digits: int = 2
    factor: float = 1.0
    of_labels: bool = False


def _of_metrics(metrics: Sequence[Metric]) -> list[Merit]:
    """Return the figures of a run's metrics: all rules and the worst clients of the first, the headline."""
    first = metrics[0]
    found = [_merit(first, first.field() + RULES[rule], rule) for rule in rules(first)]
    if first.scope == "client":
        found += [
            _merit(first, f"{first.field()}_without_twins", "without twins"),
            _merit(first, f"worst_client_{first.name}", "worst client"),
            _merit(first, f"lowest_decile_{first.name}", "lowest decile"),
        ]
    return found + [_merit(metric, metric.field(), "last round") for metric in metrics[1:]]


def _merit(metric: Metric, name: str, of: str) -> Merit:
    title = f"{'test ' * metric.held_out}{metric.heading}, {of}"
    digits, of_labels = 2 if metric.percent else 4, metric.unit == "label"
    return Merit(name, title, metric.better, ACCURACY, digits, metric.scale, of_labels)


_COSTS: tuple[Merit, ...] = (
    Merit("rounds_to_target", "rounds to target", "lower", ACCURACY, 1),
    Merit("seconds_to_target", "seconds to target", "lower", SPEED, 2),
    Merit("joules_to_target", "joules to target", "lower", SPEED, 1),
    Merit("virtual_seconds_to_target", "virtual seconds to target", "lower", WORK, 2),
    Merit("client_bytes_to_target", "client bytes to target", "lower", WORK, 0),
    Merit("round_seconds_median", "seconds per round, median", "lower", SPEED, 4),
    Merit("total_seconds", "total seconds", "lower", SPEED),
    Merit("train_seconds", "seconds training", "lower", SPEED),
    Merit("evaluate_seconds", "seconds evaluating", "lower", SPEED),
    Merit("wait_seconds", "seconds waiting", "lower", SPEED),
    Merit("communicate_seconds", "seconds communicating", "lower", SPEED),
    Merit("server_seconds", "seconds of the server", "lower", SPEED),
    Merit("record_seconds", "seconds recording", "lower", SPEED),
    Merit("overhead_seconds_median", "overhead seconds per round", "lower", SPEED, 4),
    Merit("cpu_seconds", "CPU seconds, all ranks", "lower", SPEED),
    Merit("model_rate", "model GFLOP/s per rank", "higher", SPEED),
    Merit("executed_rate", "executed GFLOP/s per rank", "higher", SPEED),
    Merit("peak_host_gigabytes", "peak memory of a rank, GB", "lower", SPEED),
    Merit("model_gflop", "model GFLOP", "lower", WORK),
    Merit("executed_gflop", "executed GFLOP", "lower", SPEED),
    Merit("client_megabytes", "client MB", "lower", WORK),
    Merit("client_megabytes_up", "MB up", "lower", WORK),
    Merit("collective_megabytes", "collective MB", "lower", SPEED),
    Merit("virtual_seconds", "virtual seconds", "lower", WORK),
    Merit("utilisation", "devices in use", "higher", WORK, 3),
    Merit("mean_staleness", "staleness, mean", "lower", WORK, 2),
    Merit("wasted_gflop", "wasted GFLOP", "lower", WORK),
    Merit("joules", "joules", "lower", SPEED),
)


_UNITS: dict[str, Callable[[Pair], object]] = {
    "session": lambda each: each.session,
    "dataset": lambda each: each.first.dataset,
    "case": lambda each: each.case,
    "pair": id,
}
"""What counts as one observation, the widest first: pairs of one mark are averaged first."""


def unit_of(pairs: Sequence[Pair]) -> str:
    """Return what counts as one: what runs share, chance in it does not part.

    Sessions where equal runs are there several times: a machine drifts from one to the next. Else datasets
    where there are several, else cases, else pairs.
    """
    return next((unit for unit, mark in _UNITS.items() if len(set(map(mark, pairs))) > 1), "pair")


@dataclass(frozen=True)
class Ratio:
    """The second side over the first.

    Attributes
    ----------
    merit : Merit
    first, second : float
        Means, in the figure's own unit.
    ratio, low, high : float
        Geometric mean of the ratios and its 95 % interval (Student's t of the logarithms).
    difference, half : float
        Mean of the differences and half the width of its 95 % interval.
    pairs : int
    flagged : int
        How many of them are not like for like.
    unit : str
        What intervals count as one: "pair", "case", "dataset" or "session".
    count : int
        How many of these. Fewer than three that differ have no interval: NaN.
    verdict : str
        What the interval says of what it rests on.
    """

    merit: Merit
    first: float
    second: float
    ratio: float
    low: float
    high: float
    difference: float
    half: float
    pairs: int
    flagged: int
    unit: str
    count: int
    verdict: str

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values = asdict(self)
        merit = values.pop("merit")
        return {"figure": merit["name"], "better": merit["better"], **values}

    @property
    def decided_by(self) -> str:
        """What the verdict rests on: the "difference" for accuracies, the "ratio" for all else."""
        return "difference" if self.merit.kind == ACCURACY or math.isnan(self.ratio) else "ratio"


def ratios(pairs: Sequence[Pair], unit: str) -> list[Ratio]:
    """Return the ratio of every figure that both runs of some pair have; refused pairs are left out.

    Pairs that are like for like count alone where there are any; else the flagged ones are shown. Those of
    one unit are averaged first.
    """
    found = []
    metrics = dict.fromkeys(each.first.metrics for each in pairs)
    merits = dict.fromkeys(merit for each in metrics for merit in _of_metrics(each))
    for merit in (*merits, *_COSTS):
        usable = [pair for pair in pairs if not pair.refused and np.isfinite(_values(pair, merit)).all()]
        alike = [pair for pair in usable if not pair.spoilt(merit.kind)]
        if usable:
            found.append(_ratio(merit, alike or usable, 0 if alike else len(usable), unit))
    return found


def _ratio(merit: Merit, pairs: Sequence[Pair], flagged: int, unit: str) -> Ratio:
    units = grouped(pairs, _UNITS[unit]).values()
    groups = [np.array([_values(each, merit) for each in members]) for members in units]
    values = np.array([group.mean(axis=0) for group in groups])
    gap = estimate(values[:, 1] - values[:, 0])
    logs = Estimate(math.nan if values.any() else 0.0, count=gap.count)
    if all((group > 0).all() for group in groups):
        logs = estimate([np.log(group[:, 1] / group[:, 0]).mean() for group in groups])
    ratio, wide = math.exp(logs.mean), math.exp(_half(logs))
    decisive = gap if merit.kind == ACCURACY or math.isnan(ratio) else logs
    verdict = decisive.verdict(merit.better == "higher", counted=merit.kind != ACCURACY, of=unit)
    if flagged == len(pairs):
        verdict = "not like for like"
    first, second = map(float, values.mean(axis=0))
    return Ratio(
        merit, first, second, ratio, ratio / wide, ratio * wide, gap.mean, _half(gap),
        len(pairs), flagged, unit, gap.count, verdict,
    )  # fmt: skip


def _values(pair: Pair, merit: Merit) -> list[float]:
    return [run.figures.get(merit.name, math.nan) for run in (pair.first, pair.second)]


def _half(found: Estimate) -> float:
    """Return half the interval; NaN where so few values differ that it would say nothing."""
    return found.half if found.count >= FEWEST or found.half == 0 else math.nan
