"""What a run cost: seconds, work, bytes and memory."""

from __future__ import annotations

import math

import numpy as np

from fedmpi.metrics.targets import Cost
from fedmpi.store.reader import Run


def by_round(run: Run) -> Cost:
    """Return what each round cost; of no round where nothing was computed yet."""
    results = run.results
    if not run.attempts:
        nothing = np.zeros(0)
        return Cost(nothing, nothing, nothing.astype(np.int64), nothing.astype(np.int64))
    return Cost(
        seconds=run.measured("round_seconds"),
        virtual_seconds=run.measured("virtual_seconds"),
        client_bytes=(results["client_bytes_up"] + results["client_bytes_down"]).sum(axis=1),
        model_flops=results["model_flops"].sum(axis=1),
    )


def figures(run: Run) -> dict[str, float]:
    """Return what a run cost by name."""
    cost, executed = by_round(run), _total(run, "executed_flops")
    work = float(cost.model_flops.sum())
    busy = sum(seconds for name, (_, seconds) in phases(run).items() if name in _BUSY) or math.nan
    peaks = [attempt.measurements["peak_host_bytes"].max(initial=0) for attempt in run.attempts]
    return {
        "total_seconds": float(cost.seconds.sum()),
        "round_seconds_median": float(np.median(cost.seconds)) if len(cost.seconds) else math.nan,
        "overhead_seconds_median": _overhead(run),
        "repeated_rounds": sum(attempt.rounds_written for attempt in run.attempts) - run.rounds_completed,
        **{f"{name}_seconds": slowest for name, (slowest, _) in phases(run).items()},
        "cpu_seconds": _total(run, "cpu_seconds"),
        "model_gflop": work / 1e9,
        "executed_gflop": executed / 1e9,
        "model_rate": (work + float(run.results["evaluation_flops"].sum())) / 1e9 / busy,
        "executed_rate": executed / 1e9 / busy,
        "client_megabytes": float(cost.client_bytes.sum()) / 1e6,
        "collective_megabytes": _total(run, "collective_bytes") / 1e6,
        "peak_host_gigabytes": float(max(peaks, default=math.nan)) / 1e9,
        "virtual_seconds": float(cost.virtual_seconds.sum()),
    }


_BUSY = ("train", "evaluate")


def phases(run: Run) -> dict[str, tuple[float, float]]:
    """Return seconds by phase over all rounds: of the slowest rank of each, and of all ranks together."""
    found: dict[str, tuple[float, float]] = {}
    for attempt, kept in run.kept_rounds():
        seconds = attempt.measurements["phase_seconds"][kept]
        slowest, total = seconds.max(axis=1, initial=0.0).sum(axis=0), seconds.sum(axis=(0, 1))
        for place, name in enumerate(attempt.phases):
            before = found.get(name, (0.0, 0.0))
            found[name] = (before[0] + float(slowest[place]), before[1] + float(total[place]))
    return found


def _overhead(run: Run) -> float:
    """Return the median over rounds of the time beyond the busiest rank's training and evaluation."""
    rounds = [np.zeros(0)]
    for attempt, kept in run.kept_rounds():
        places = [attempt.phases.index(name) for name in _BUSY]
        work = attempt.measurements["phase_seconds"][kept][:, :, places].sum(axis=2)
        rounds.append(attempt.measurements["round_seconds"][kept] - work.max(axis=1, initial=0.0))
    values = np.concatenate(rounds)
    return float(np.median(values)) if len(values) else math.nan


def _total(run: Run, name: str) -> float:
    return float(sum(attempt.measurements[name][kept].sum() for attempt, kept in run.kept_rounds()))
