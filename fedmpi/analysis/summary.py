"""One run in figures; every figure is defined in docs/metrics.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from fedmpi.analysis import costs, scores
from fedmpi.errors import BadInput
from fedmpi.metrics import clients, selection, targets
from fedmpi.store.reader import Run
from fedmpi.store.schema import Array

AGREEMENT = "domain_agreement"
"""Adjusted Rand index of clusters and the domains of datasets: a field of records, a figure, a column."""


def summarise(run: Run, target: float | None = None) -> dict[str, Any]:
    """Return the figures of one run by name.

    Parameters
    ----------
    target : float, optional
        Value of the headline, for the to-target figures.

    Raises
    ------
    BadInput
        The headline never has the target's value.
    """
    figures = {
        **_identity_figures(run),
        "metric": run.headline.name,
        "constant": scores.constant(run, run.headline),
        **_headline_figures(run),
        **scores.further(run),
        **scores.trust(run),
        **_left_out(run),
        **_split_figures(run),
        **_agreement(run),
        **costs.figures(run),
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
        "ranks": [attempt.ranks for attempt in run.attempts],
    }


def method(config: Mapping[str, Any]) -> str:
    """Return what trains: the algorithm, before it the objective where that is unsupervised."""
    algorithm, objective = (str(setting(config, axis)) for axis in ("algorithm", "objective"))
    return algorithm if objective in ("supervised", "None") else f"{objective} with {algorithm}"


def _headline_figures(run: Run) -> dict[str, Any]:
    """Return the headline under all rules; where clients have their own, also of the worst of them."""
    metric = run.headline
    field, suffixes, found = metric.field(), scores.RULES, dict[str, Any]()
    for rule in scores.rules(metric):
        found[f"{field}{suffixes[rule]}"] = scores.score(run, metric, rule)
    if metric.scope != "client":
        return found
    for rule, suffix in suffixes.items() if scores.has_outcomes(run) else ():
        found[f"{field}_without_twins{suffix}"] = clients.mean(scores.without_twins(run, rule))
    final = scores.values(run, metric)
    place, worst = clients.worst(final, metric.sign)
    return found | {
        "worst_client": run.clients[place] if place >= 0 else None,
        f"worst_client_{metric.name}": worst,
        f"lowest_decile_{metric.name}": clients.lowest_decile(final, metric.sign),
    }


def _left_out(run: Run) -> dict[str, int]:
    """Return how many label columns have no value in the last evaluated round, where there are columns."""
    last, columns = scores.last_evaluated(run), scores.by_task(run)
    if last is None or run.headline.field() not in columns:
        return {}
    return {"test_tasks_left_out": int(np.isnan(columns[run.headline.field()][last]).sum())}


def per_client(run: Run) -> list[dict[str, Any]]:
    """Return one row of figures per client: losses, and the metrics of which clients have values.

    None of a run that records no values of single clients.
    """
    if scores.is_together(run.config):
        return []
    results = run.results
    columns = _client_losses(run) | _client_metrics(run)
    if (hostile := scores.attackers(run)) is not None:
        columns["attacker"] = hostile
    up, down = (results[f"client_bytes_{way}"].sum(axis=0) for way in ("up", "down"))
    flops = results["model_flops"].sum(axis=0)
    return [
        {
            "client": name,
            "rounds": int(results["participated"][:, index].sum()),
            **{column: values[index].item() for column, values in columns.items()},
            "model_gflop": float(flops[index]) / 1e9,
            "client_megabytes": float(up[index] + down[index]) / 1e6,
            "client_megabytes_up": float(up[index]) / 1e6,
        }
        for index, name in enumerate(run.clients)
    ]


def _client_losses(run: Run) -> dict[str, Array]:
    """Return losses [n] of the clients' last evaluated round; of their last where they have no metric."""
    scored = run.headline.field() if run.headline.scope == "client" else "train_loss"
    last = selection.last_rounds(run.results[scored])
    names = [name for name in ("train_loss", "test_loss") if name in run.results]
    return {name: selection.at_rounds(run.results[name], last) for name in names}


def _client_metrics(run: Run) -> dict[str, Array]:
    """Return the metrics of which clients have values [n], of the headline under all rules."""
    found: dict[str, Array] = {}
    for metric in run.metrics:
        field, own = metric.field(), scores.by_client(run, metric)
        if own is None:
            continue
        found[field] = own
        if metric.scope == "client":
            val = run.results[metric.field("val")]
            found[metric.field("val")] = selection.at_rounds(val, selection.last_rounds(run.results[field]))
    if run.headline.scope == "client":
        field, twins = run.headline.field(), scores.has_outcomes(run)
        for rule, suffix in scores.RULES.items():
            found[f"{field}{suffix}"] = scores.values(run, run.headline, rule)
            if twins:
                found[f"{field}_without_twins{suffix}"] = scores.without_twins(run, rule)
        if twins:
            found["test_graphs_without_twins"] = scores.num_without_twins(run)
        if (constant := scores.constant_by_client(run, run.headline)) is not None:
            found["constant"] = constant
    return found


def _split_figures(run: Run) -> dict[str, Any]:
    """Return how often clusters split, how often off a single client, and the first such round (1-based)."""
    found = clients.splits(scores.splitting_groups(run))
    return {
        "splits": len(found),
        "single_client_splits": sum(size == 1 for _, size in found),
        "first_split_round": found[0][0] + 1 if found else None,
    }


def _agreement(run: Run) -> dict[str, float]:
    """Return how well clusters follow domains, a mean over rounds, where a record says it."""
    values = run.results.get(AGREEMENT, np.zeros(0))
    return {} if np.isnan(values).all() else {AGREEMENT: float(np.nanmean(values))}


def _target_figures(run: Run, target: float) -> dict[str, Any]:
    metric, cost = run.headline, costs.by_round(run)
    if not metric.low <= target <= metric.high:
        between = f"between {metric.low:g} and {metric.high:g}"
        raise BadInput(f"--target {target}: {metric.title} lies {between}; give a value of it")
    figures: dict[str, Any] = {"target": target}
    for label, part in (("to_target", "val"), ("to_target_on_test_data", "test")):
        reached = targets.to_target(scores.curve(run.results, metric, part), target, cost, metric.higher)
        counted = asdict(reached).items() if reached else ()
        figures[label] = {name: value for name, value in counted if value is not None} or None
    return figures


def setting(config: Mapping[str, Any], key: str) -> Any:
    """Return a setting's value, or its name where it is a table with options."""
    value = config.get(key)
    return value.get("name") if isinstance(value, Mapping) else value
