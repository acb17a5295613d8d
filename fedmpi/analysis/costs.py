"""What a run cost: seconds, work, bytes, memory and energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from fedmpi.analysis.scores import is_together
from fedmpi.clock import seconds_of
from fedmpi.metrics.targets import Cost
from fedmpi.store.reader import AttemptRecord, Run
from fedmpi.store.schema import DEVICE_ENERGY, HOST_ENERGY, SECURE_STEPS, Array, preparation_seconds


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
        joules=joules_by_round(run),
    )


def figures(run: Run) -> dict[str, float]:
    """Return what a run cost by name."""
    cost, executed = by_round(run), _total(run, "executed_flops")
    slowest = by_name(run, "phase_seconds", lambda seconds: seconds.max(axis=1, initial=0.0).sum(axis=0))
    slowest_in_steps = by_step(run, "seconds", lambda rows: rows.max(axis=1, initial=0.0).sum())
    of_ranks = by_name(run, "phase_seconds", lambda seconds: seconds.sum(axis=(0, 1)))
    work = math.nan if is_together(run.config) else float(cost.model_flops.sum())
    busy = sum(of_ranks.get(name, 0.0) for name in _BUSY) or math.nan
    peaks = [attempt.measurements["peak_host_bytes"].max(initial=0) for attempt in run.attempts]
    return {
        "total_seconds": float(cost.seconds.sum()),
        "round_seconds_median": float(np.median(cost.seconds)) if len(cost.seconds) else math.nan,
        "overhead_seconds_median": _overhead(run),
        "repeated_rounds": sum(attempt.rounds_written for attempt in run.attempts) - run.rounds_completed,
        **{f"{name}_seconds": seconds for name, seconds in slowest.items()},
        "cpu_seconds": _total(run, "cpu_seconds"),
        "model_gflop": work / 1e9,
        "executed_gflop": executed / 1e9,
        "model_rate": (work + float(run.results["evaluation_flops"].sum())) / 1e9 / busy,
        "executed_rate": executed / 1e9 / busy,
        "client_megabytes": float(cost.client_bytes.sum()) / 1e6,
        "client_megabytes_up": float(run.results["client_bytes_up"].sum()) / 1e6,
        "collective_megabytes": _total(run, "collective_bytes") / 1e6,
        "peak_host_gigabytes": float(max(peaks, default=math.nan)) / 1e9,
        "virtual_seconds": float(cost.virtual_seconds.sum()),
        **{f"{name}_seconds": seconds for name, seconds in slowest_in_steps.items()},
        **{f"{name}_megabytes": sent / 1e6 for name, sent in by_step(run, "bytes", np.sum).items()},
        **energy(run),
        **of_devices(run),
        **of_gossip(run),
    }


def of_gossip(run: Run) -> dict[str, float]:
    """Return how far clients without a server are from one model by name; empty for a run with one.

    `spectral_gap` is the mean over rounds, `consensus_distance` that after the last round.
    """
    results = run.results
    if "consensus_distance" not in results or not run.rounds_completed:
        return {}
    gap, distance = results["spectral_gap"].mean(), results["consensus_distance"][-1]
    return {"spectral_gap": float(gap), "consensus_distance": float(distance)}


def of_devices(run: Run) -> dict[str, float]:
    """Return what the clients' devices did by name; empty for a run without a clock of its devices.

    `virtual_clock` is that clock after the last step, in seconds: a virtual one, or the real one on which
    devices are imitated. `utilisation` is the share of their time in which they were at work on what was
    used or given up; `stale_share` that of updates which start from an older model than they change,
    `mean_staleness` in steps.
    """
    results = run.results
    if not run.rounds_completed:
        return {}
    found = {"virtual_clock": float(run.measured("virtual_seconds").sum())} if is_imitated(run) else {}
    if "virtual_clock" in results:
        clock = float(results["virtual_clock"][-1])
        busy = float(results["device_seconds"].mean(axis=1).sum())
        found = {"virtual_clock": clock, "utilisation": busy / clock}
    if "staleness" in results:
        used = results["staleness"][results["staleness"] >= 0]
        found |= {"stale_share": float((used > 0).mean()), "mean_staleness": float(used.mean())}
    if "wasted_flops" in results:
        found["wasted_gflop"] = float(results["wasted_flops"].sum()) / 1e9
    return found


def is_imitated(run: Run) -> bool:
    """Return whether a run imitates devices on the real clock."""
    schedule = run.config.get("schedule")
    return isinstance(schedule, Mapping) and schedule.get("clock") == "real"


def by_step(run: Run, unit: str, take: Callable[[Array], float]) -> dict[str, float]:
    """Return sums over attempts by step of secure sums; empty for a run without.

    Parameters
    ----------
    unit : str
        "seconds" or "bytes".
    take : callable
        Returns what counts of an attempt's kept rounds [rounds, ranks].
    """
    found: dict[str, float] = {}
    for name in SECURE_STEPS:
        for attempt, kept in _with(run, f"{name}_{unit}"):
            value = float(take(attempt.measurements[f"{name}_{unit}"][kept]))
            found[name] = found.get(name, 0.0) + value
    return found


_BUSY = ("train", "evaluate")


def by_name(run: Run, measurement: str, take: Callable[[Array], Array]) -> dict[str, float]:
    """Return sums over the attempts that have a measurement, by phase or by collective.

    Parameters
    ----------
    take : callable
        Returns what counts of an attempt's kept rounds [rounds, ranks, names], by name.
    """
    found: dict[str, float] = {}
    for attempt, kept in _with(run, measurement):
        names = attempt.phases if measurement.startswith("phase") else attempt.collectives
        for name, value in zip(names, take(attempt.measurements[measurement][kept]), strict=True):
            found[name] = found.get(name, 0.0) + float(value)
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


def round_ends(run: Run) -> Array:
    """Return the end of each recorded round [R] in seconds since 1970: start of its attempt plus rounds.

    Round 1 has the seconds of a phase before it, at whose end the attempt starts.
    """
    ends = np.zeros(run.rounds_completed)
    for attempt, kept in run.kept_rounds():
        before = 0.0 if attempt.first_round else preparation_seconds(attempt.provenance) or 0.0
        since = np.cumsum(attempt.measurements["round_seconds"]) - before
        ends[kept + attempt.first_round] = seconds_of(attempt.started) + since[kept]
    return ends


_PARTS = (HOST_ENERGY[0].name, DEVICE_ENERGY[0].name)
_BY_PHASE = HOST_ENERGY[1].name


def energy(run: Run) -> dict[str, float]:
    """Return the joules of a run by name; empty for a run without counters.

    `joules` is the sum of `host_joules` and `device_joules`, as far as they were counted; NaN where some
    rounds were computed on machines without counters. `train_joules` and so on are those of the phases.
    """
    parts = {name: float(values.sum()) for name, values in _parts(run).items()}
    if not parts:
        return {}
    of_phases = {f"{name}_joules": joules for name, joules in joules_by_phase(run).items()}
    return {"joules": sum(parts.values()), **parts, **of_phases}


def joules_by_round(run: Run) -> Array | None:
    """Return the joules of each round, float64 [R], NaN where none were counted; None without counters."""
    parts = list(_parts(run).values())
    return np.sum(parts, axis=0) if parts else None


def joules_by_phase(run: Run) -> dict[str, float]:
    """Return the joules of processors and memory by phase of the ranks that read them, over all rounds."""
    return by_name(run, _BY_PHASE, lambda joules: _over_ranks(joules).sum(axis=0))


def _parts(run: Run) -> dict[str, Array]:
    """Return the joules of each round [R] by what used them."""
    found: dict[str, Array] = {}
    for name in _PARTS:
        for attempt, kept in _with(run, name):
            rows = found.setdefault(name, np.full(run.rounds_completed, np.nan))
            rows[kept + attempt.first_round] = _over_ranks(attempt.measurements[name][kept])
    return found


def _with(run: Run, name: str) -> Iterator[tuple[AttemptRecord, Array]]:
    return (pair for pair in run.kept_rounds() if name in pair[0].measurements)


def _over_ranks(values: Array) -> Array:
    """Return sums over ranks, axis 1, of those that read; NaN where none does."""
    silent = np.isnan(values).all(axis=1)
    sums: Array = np.where(silent, np.nan, np.nansum(values, axis=1))
    return sums
