"""Rows of the leaderboard from the records of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedmpi.analysis import costs, scores
from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.rows import ENDED, REFERENCE, TUNING, Row
from fedmpi.analysis.leaderboard.track import Pair, Track, tuned_text
from fedmpi.analysis.winners import best_round
from fedmpi.errors import BadInput
from fedmpi.metrics import clients
from fedmpi.metrics.targets import to_target
from fedmpi.store.identical import results_digest
from fedmpi.store.reader import Run


def rows_of(found: Track, runs: Iterable[Run], stage: str, earlier: Sequence[Row] = ()) -> list[Row]:
    """Return the rows of the runs of a stage that are complete or have diverged, in the order of the runs.

    Parameters
    ----------
    found : Track
    runs : iterable of Run
    stage : str
    earlier : sequence of Row
        Of FedAvg, for the target, where it is not among the runs.
    """
    ended, pairs = [run for run in runs if run.status in ENDED], _pairs(found, stage)
    listed = [_row(found, run, stage, pairs) for run in ended]
    targets = _targets([row for row in earlier if row.stage == stage]) | _targets(listed)
    both = zip(listed, ended, strict=True)
    return [_with_target(row, run, targets.get((row.data, row.seed), math.nan)) for row, run in both]


def _row(found: Track, run: Run, stage: str, pairs: Mapping[str, Pair]) -> Row:
    name = str(run.config["name"])
    if name not in pairs:
        raise BadInput(
            f"{run.folder}: no case of {found.suite.path}; it was changed: run it into another --out"
        )
    pair = pairs[name]
    place, cost = best_round(run), costs.by_round(run)
    whole = run.status == "complete" and place >= 0
    taken = int(run.results["participated"].sum())
    origin = run.attempts[-1].provenance if run.attempts else {}
    return Row(
        track=found.name,
        data=pair[0],
        method=pair[1],
        stage=stage,
        case=name,
        seed=int(run.config["seed"]),
        status=run.status,
        settings=tuned_text(run.config, found.candidates[pair]),
        metric=run.headline.name,
        best_round=place + 1,
        val=_at(run, "val", place) if whole else math.nan,
        test=_at(run, "test", place) if whole else math.nan,
        worst_decile=_worst_decile(run, place) if whole else math.nan,
        clients=len(run.clients),
        bytes_per_client=float(cost.client_bytes.sum()) / taken if taken else math.nan,
        model_gflop=float(cost.model_flops.sum()) / 1e9,
        cpu_seconds=round(float(_cpu_seconds(run).sum()), 3),
        target=math.nan,
        rounds_to_target=math.nan,
        cpu_seconds_to_target=math.nan,
        commit=str(origin.get("source", {}).get("commit", "")),
        numerics_version=run.numerics_version,
        config_digest=run.config_digest,
        results_digest=results_digest(run),
    )


def _pairs(found: Track, stage: str) -> dict[str, Pair]:
    """Return federation and method by the name of a stage's case."""
    if stage == TUNING:
        return {case.name: pair for pair, cases in found.candidates.items() for case in cases}
    return found.final_cases


def _at(run: Run, part: str, place: int) -> float:
    return float(scores.curve(run.results, run.headline, part)[place])


def _worst_decile(run: Run, place: int) -> float:
    metric = run.headline
    own = run.results.get(f"{'' if metric.scope == 'client' else 'client_'}{metric.field()}")
    if own is None or own.ndim == 1 or len(run.clients) == 1:
        return math.nan
    return clients.lowest_decile(own[place], metric.sign)


def _cpu_seconds(run: Run) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the CPU seconds of all ranks by round [R]."""
    found = np.zeros(run.rounds_completed)
    for attempt, kept in run.kept_rounds():
        found[kept + attempt.first_round] = attempt.measurements["cpu_seconds"][kept].sum(axis=1)
    return found


def _targets(listed: Iterable[Row]) -> dict[tuple[str, int], float]:
    """Return FedAvg's validation score by federation and seed, the mean over its candidates."""
    own = (row for row in listed if row.method == REFERENCE and row.scored)
    known = grouped(own, lambda row: (row.data, row.seed))
    return {place: float(np.mean([row.val for row in each])) for place, each in known.items()}


def _with_target(row: Row, run: Run, target: float) -> Row:
    if not row.scored or math.isnan(target):
        return row
    curve = scores.curve(run.results, run.headline, "val")
    spent = to_target(curve, target, costs.by_round(run), run.headline.higher)
    if spent is None:
        return replace(row, target=target)
    clock = run.results.get("virtual_clock")
    return replace(
        row,
        target=target,
        rounds_to_target=spent.rounds,
        cpu_seconds_to_target=round(float(_cpu_seconds(run)[: spent.rounds].sum()), 3),
        gflop_to_target=spent.model_flops / 1e9,
        bytes_to_target=spent.client_bytes / row.clients,
        virtual_seconds_to_target=math.nan if clock is None else float(clock[spent.rounds - 1]),
    )
