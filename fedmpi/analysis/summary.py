"""One run in figures; every figure is defined in docs/metrics.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.scores import score_figures
from fedmpi.errors import BadInput
from fedmpi.metrics import clients, selection, targets
from fedmpi.metrics.headline import NAMES, headline
from fedmpi.store.reader import Run

CLUSTERING = ("clustering_accuracy", "clustering_f1", "probe_accuracy")
"""Scores that the records of unsupervised objectives have, by round; the first is the headline."""


def summarise(run: Run, target: float | None = None) -> dict[str, Any]:
    """Return the figures of one run by name.

    Parameters
    ----------
    target : float, optional
        Accuracy, or score by which the run is judged instead, for the to-target figures.

    Raises
    ------
    BadInput
        The target is above 1, of a score that never is.
    """
    last = selection.last_rounds(run.results["test_accuracy"])
    final = selection.at_rounds(run.results["test_accuracy"], last)
    best = best_test_accuracy(run)
    worst_client, worst_accuracy = clients.worst(final)
    figures = {
        **_identity_figures(run),
        "test_accuracy": clients.mean(final),
        "test_accuracy_best_by_validation": clients.mean(best),
        "test_accuracy_as_published": clients.mean(published_test_accuracy(run)),
        **{name: clients.mean(values) for name, values in without_twins(run).items()},
        "worst_client": run.clients[worst_client] if worst_client >= 0 else None,
        "worst_client_accuracy": worst_accuracy,
        "lowest_decile_accuracy": clients.lowest_decile(final),
        **score_figures(run),
        **clustering_figures(run),
        **_split_figures(run),
        **_cost_figures(run),
    }
    if target is not None:
        figures |= _target_figures(run, target)
    return figures


def _identity_figures(run: Run) -> dict[str, Any]:
    """Return what was run, and how far."""
    return {
        "case": run.folder.resolve().name,
        "folder": str(run.folder),
        "dataset": setting(run.config, "dataset"),
        "algorithm": setting(run.config, "algorithm"),
        "objective": setting(run.config, "objective"),
        "seed": run.config.get("seed"),
        "status": run.status,
        "reason": run.reason,
        "rounds": run.rounds_completed,
        "rounds_planned": run.rounds,
        "clients": len(run.clients),
        "ranks": [life.ranks for life in run.lives],
    }


def method(config: Mapping[str, Any]) -> str:
    """Return what trains: the algorithm, before it the objective where that is unsupervised."""
    algorithm, objective = (str(setting(config, axis)) for axis in ("algorithm", "objective"))
    return algorithm if objective in ("supervised", "None") else f"{objective} with {algorithm}"


def clustering_figures(run: Run) -> dict[str, float]:
    """Return the scores of an unsupervised run's clusters in the last evaluated round; nothing of others."""
    found = {}
    for name in CLUSTERING:
        if name in run.results:
            scored = run.results[name][~np.isnan(run.results[name])]
            found[name] = float(scored[-1]) if len(scored) else math.nan
    return found


def by_accuracy(run: Run) -> bool:
    """Return whether a run is judged by accuracy: not by a score over all graphs, nor by its clusters."""
    return CLUSTERING[0] not in run.results and headline(run.results) is None


def best_test_accuracy(run: Run) -> selection.Float:
    """Return each client's test accuracy [n] at its best round by validation."""
    rounds = selection.best_rounds(run.results["val_accuracy"], run.results["val_loss"])
    return selection.at_rounds(run.results["test_accuracy"], rounds)


def splitting_groups(run: Run) -> npt.NDArray[np.int_]:
    """Return the clusters by round [R, n] if they split; all one if they are formed anew in every round."""
    group = np.asarray(run.results["group"])
    return np.zeros_like(group) if "domain_agreement" in run.results else group


def published_test_accuracy(run: Run) -> selection.Float:
    """Return each client's test accuracy [n] as published: a maximum over test accuracies at its splits."""
    return selection.as_published(run.results["test_accuracy"], splitting_groups(run))


def without_twins(run: Run) -> dict[str, selection.Float]:
    """Return each client's test accuracy [n] over the test graphs without a twin in any training set.

    By figure, under the three selection rules; the round is chosen as for all test graphs, but for
    "as published", where the maximum is taken over these accuracies. NaN where every test graph has
    a twin, and for records that do not hold the single graphs' outcomes.
    """
    names = [f"test_accuracy_without_twins{rule}" for rule in ("", "_best_by_validation", "_as_published")]
    if "test_twin_own" not in run.partition:
        return {name: np.full(len(run.clients), np.nan) for name in names}
    results, partition = run.results, run.partition
    clean = (partition["test_twin_own"] | partition["test_twin_other"]) == 0
    accuracy = clients.subset_accuracy(results["test_correct"], partition["test_ptr"], clean)
    accuracy = np.where(np.isnan(results["test_accuracy"]), np.nan, accuracy)
    last = selection.last_rounds(results["test_accuracy"])
    best = selection.best_rounds(results["val_accuracy"], results["val_loss"])
    values = (
        selection.at_rounds(accuracy, last),
        selection.at_rounds(accuracy, best),
        selection.as_published(accuracy, splitting_groups(run)),
    )
    return dict(zip(names, values, strict=True))


def num_without_twins(run: Run) -> list[int | None]:
    """Return each client's number of test graphs without a twin; None where the record does not say."""
    partition = run.partition
    if "test_twin_own" not in partition:
        return [None] * len(run.clients)
    clean = (partition["test_twin_own"] | partition["test_twin_other"]) == 0
    pieces = np.split(clean, partition["test_ptr"][1:-1])
    return [int(piece.sum()) for piece in pieces]


def per_client(run: Run) -> list[dict[str, Any]]:
    """Return one row of figures per client."""
    results = run.results
    scored = "test_accuracy" if by_accuracy(run) else "train_loss"
    last = selection.last_rounds(results[scored])
    columns = {
        name: selection.at_rounds(results[name], last)
        for name in ("train_loss", "val_accuracy", "test_accuracy", "test_loss")
    }
    columns["test_accuracy_best_by_validation"] = best_test_accuracy(run)
    columns["test_accuracy_as_published"] = published_test_accuracy(run)
    columns |= without_twins(run)
    for field in NAMES:
        if f"client_test_{field}" in results:
            scores = results[f"client_test_{field}"]
            columns["test_score"] = selection.at_rounds(scores, selection.last_rounds(scores))
    clean = num_without_twins(run)
    traffic = (results["client_bytes_up"] + results["client_bytes_down"]).sum(axis=0)
    flops = results["model_flops"].sum(axis=0)
    return [
        {
            "client": name,
            "rounds": int(results["participated"][:, index].sum()),
            **{column: float(values[index]) for column, values in columns.items()},
            "test_graphs_without_twins": clean[index],
            "model_gflop": float(flops[index]) / 1e9,
            "client_megabytes": float(traffic[index]) / 1e6,
        }
        for index, name in enumerate(run.clients)
    ]


def _split_figures(run: Run) -> dict[str, Any]:
    """Return how often clusters split, how often off a single client, and the first such round (1-based)."""
    found = clients.splits(splitting_groups(run))
    return {
        "splits": len(found),
        "single_client_splits": sum(size == 1 for _, size in found),
        "first_split_round": found[0][0] + 1 if found else None,
    }


def _cost(run: Run) -> targets.Cost:
    results = run.results
    if not run.lives:
        nothing = np.zeros(0)
        return targets.Cost(nothing, nothing, nothing.astype(np.int64), nothing.astype(np.int64))
    return targets.Cost(
        seconds=run.measured("round_seconds"),
        virtual_seconds=run.measured("virtual_seconds"),
        client_bytes=(results["client_bytes_up"] + results["client_bytes_down"]).sum(axis=1),
        model_flops=results["model_flops"].sum(axis=1),
    )


def _cost_figures(run: Run) -> dict[str, Any]:
    cost = _cost(run)
    written = sum(life.rounds_written for life in run.lives)
    return {
        "total_seconds": float(cost.seconds.sum()),
        "round_seconds_median": float(np.median(cost.seconds)) if len(cost.seconds) else math.nan,
        "overhead_seconds_median": _overhead(run),
        "repeated_rounds": written - run.rounds_completed,
        **{f"{phase}_seconds": value for phase, value in _phase_seconds(run).items()},
        "model_gflop": float(cost.model_flops.sum()) / 1e9,
        "client_megabytes": float(cost.client_bytes.sum()) / 1e6,
        "collective_megabytes": _rank_total(run, "collective_bytes") / 1e6,
        "executed_gflop": _rank_total(run, "executed_flops") / 1e9,
        "virtual_seconds": float(cost.virtual_seconds.sum()),
    }


def _overhead(run: Run) -> float:
    """Return the median over rounds of the time beyond the busiest rank's training and evaluation."""
    rounds = []
    for life, kept in run.kept_rounds():
        work = sum(
            life.measurements["phase_seconds"][kept][:, :, life.phases.index(p)]
            for p in ("train", "evaluate")
        )
        rounds.append(life.measurements["round_seconds"][kept] - np.max(work, axis=1, initial=0.0))
    values = np.concatenate([np.zeros(0), *rounds])
    return float(np.median(values)) if len(values) else math.nan


def _phase_seconds(run: Run) -> dict[str, float]:
    """Return per phase: the slowest rank of each round, summed over rounds."""
    total: dict[str, float] = {}
    for life, kept in run.kept_rounds():
        slowest = life.measurements["phase_seconds"][kept].max(axis=1, initial=0.0)
        for name, value in zip(life.phases, slowest.sum(axis=0), strict=True):
            total[name] = total.get(name, 0.0) + float(value)
    return total


def _rank_total(run: Run, name: str) -> float:
    return float(sum(life.measurements[name][kept].sum() for life, kept in run.kept_rounds()))


def _target_figures(run: Run, target: float) -> dict[str, Any]:
    cost, found = _cost(run), headline(run.results)
    higher = found is None or found.higher
    if target > 1 and higher:
        name = "an accuracy" if found is None else f"a {found.name}"
        raise BadInput(f"--target {target}: give {name} between 0 and 1, for instance 0.7")
    val, test = run.results["val_accuracy"], run.results["test_accuracy"]
    if found is not None:
        val, test = found.val[:, None], found.test[:, None]
    elif CLUSTERING[0] in run.results:
        val = test = run.results[CLUSTERING[0]][:, None]
    figures: dict[str, Any] = {"target": target}
    for label, scores in (("to_target", val), ("to_target_on_test_data", test)):
        reached = targets.to_target(scores, target, cost, higher)
        figures[label] = asdict(reached) if reached else None
    return figures


def setting(config: Mapping[str, Any], key: str) -> Any:
    """Return a setting's value, or its name where it is a table with options."""
    value = config.get(key)
    return value.get("name") if isinstance(value, Mapping) else value
