"""The values of a run's metrics: under the rules of selection, by client, by round and by task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.metrics import clients, selection
from fedmpi.metrics.clustering import one_cluster
from fedmpi.metrics.metric import ACCURACY, CLUSTERING_F1, Metric
from fedmpi.store.reader import Run
from fedmpi.store.schema import MEAN_MODEL

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RULES = {"last round": "", "best by validation": "_best_by_validation", "as published": "_as_published"}
"""Rules of selection, and what they add to a field's name; only the last one looks at test data to choose."""

LAST, BEST, PUBLISHED = RULES

Results = Mapping[str, npt.NDArray[Any]]


def rules(metric: Metric) -> tuple[str, ...]:
    """Return the rules under which a metric has a value: only the last round where nothing is held out."""
    return tuple(RULES) if metric.held_out else (LAST,)


def curve(results: Results, metric: Metric, part: str = "test") -> Float:
    """Return a metric by round [R], its mean over the clients evaluated; NaN where none was.

    Parameters
    ----------
    results : mapping
        Of a run, or of the rounds of a job that still runs.
    metric : Metric
    part : str
        "val" or "test"; the same where nothing is held out.
    """
    return clients.mean_by_round(results[metric.field(part)])


def values(run: Run, metric: Metric, rule: str = LAST) -> Float:
    """Return a metric's value of each client [n], or the run's [1] where no client has one of its own.

    Parameters
    ----------
    run : Run
    metric : Metric
    rule : str
        One of `rules` of the metric.
    """
    return _selected(run, metric, rule, columns(run.results[metric.field()]))


def score(run: Run, metric: Metric, rule: str = LAST) -> float:
    """Return the run's value: the mean over clients where each has one of its own; NaN if there is none."""
    return clients.mean(values(run, metric, rule))


def further(run: Run) -> dict[str, float]:
    """Return what a run scores beside its headline, by field name with the rule's ending.

    Its other metrics under each rule and what a constant scores by them; and of metrics over all examples
    that clients have as well (``client_...``) the mean over clients, which chooses its own round. Without a
    server what the mean of all models scores in the last round (``mean_model_...``).
    """
    found: dict[str, float] = {}
    for metric in run.metrics:
        field, endings = metric.field(), [(rule, RULES[rule]) for rule in rules(metric)]
        if metric is not run.metrics[0]:
            found |= {f"{field}{ending}": score(run, metric, rule) for rule, ending in endings}
            if not math.isnan(same := constant(run, metric)):
                found[f"constant_{metric.name}"] = same
        if f"client_{field}" in run.results:
            for rule, ending in endings:
                found[f"client_{field}{ending}"] = _mean_of_clients(run, metric, rule)
        if (stored := run.results.get(f"{MEAN_MODEL}{field}")) is not None:
            table = columns(stored)
            last = selection.at_rounds(table, selection.last_rounds(table))
            found[f"{MEAN_MODEL}{field}"] = clients.mean(last)
        if (stored := run.partition.get(f"constant_client_{metric.name}")) is not None:
            found[f"constant_client_{metric.name}"] = float(stored)
    return found


def _mean_of_clients(run: Run, metric: Metric, rule: str) -> float:
    stored = (run.results[f"client_{metric.field(part)}"] for part in ("test", "val"))
    test, val = (clients.mean_by_round(each)[:, None] for each in stored)
    if rule == LAST:
        rounds = selection.last_rounds(test)
    else:
        rounds = selection.best_rounds(metric.sign * (val if rule == BEST else test))
    return float(selection.at_rounds(test, rounds)[0])


def columns(stored: npt.NDArray[Any]) -> Float:
    """Return what is stored by round as [R, n], or [R, 1] where it is of the whole run."""
    return np.asarray(stored if stored.ndim > 1 else stored[:, None], np.float64)


def best_rounds(run: Run, metric: Metric) -> Int:
    """Return the best round by validation of each client [n] or of the run [1], 0-based; -1 without one.

    Equal values of clients are told apart by the validation loss; the earliest of what is still equal counts.
    """
    loss = run.results.get("val_loss") if metric.scope == "client" else None
    return selection.best_rounds(metric.sign * columns(run.results[metric.field("val")]), loss)


def by_client(run: Run, metric: Metric) -> Float | None:
    """Return each client's value [n] in its last evaluated round; None where clients have none."""
    if metric.scope == "client":
        return values(run, metric)
    own = run.results.get(f"client_{metric.field()}")
    return None if own is None else selection.at_rounds(own, selection.last_rounds(own))


def constant_by_client(run: Run, metric: Metric) -> Float | None:
    """Return what predicting the same for all its examples scores at each client [n], NaN where unknown."""
    found = run.attempts[-1].provenance.get("constants") if run.attempts else None
    listed = found.get(metric.name) if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) != len(run.clients):
        return None
    return np.array([each if isinstance(each, int | float) else math.nan for each in listed], np.float64)


def constant(run: Run, metric: Metric) -> float:
    """Return what predicting the same for every example scores; NaN where that is not known.

    Where clients have scores of their own it is the same prediction for every example of a client.
    """
    if metric.scope == "client" and (own := constant_by_client(run, metric)) is not None:
        return clients.mean(own)
    if metric == CLUSTERING_F1 and "class_counts" in run.partition:
        return one_cluster(run.partition["class_counts"].sum(axis=0)).macro_f1
    stored = run.partition.get(f"constant_{metric.name}")
    if not math.isnan(metric.constant) or stored is None:
        return metric.constant
    return clients.mean(np.asarray(stored, np.float64).ravel())


TOGETHER = 'record = "protocol": values of single clients are not recorded'
"""What is shown of a run in place of them."""


def is_together(config: Mapping[str, Any]) -> bool:
    """Return whether a run of this configuration holds figures of all clients together only."""
    return config.get("record") == "protocol"


def splitting_groups(run: Run) -> npt.NDArray[np.int_]:
    """Return the clusters by round [R, n] if they split; all one if they are formed anew, or merge."""
    group = np.asarray(run.results["group"])
    anew = "domain_agreement" in run.results or any(
        len({*zip(*both, strict=True)}) > len({*both[1]}) for both in pairwise(group.tolist())
    )
    return np.zeros_like(group) if anew else group


def has_outcomes(run: Run) -> bool:
    """Return whether the record says which test examples are right, and which have a twin."""
    return run.headline == ACCURACY and "test_correct" in run.results and "test_twin_own" in run.partition


def without_twins(run: Run, rule: str = LAST) -> Float:
    """Return each client's headline [n] over the test examples without a twin in any training set.

    The round is chosen as for all test examples, but for "as published", where the maximum is taken over
    these values. NaN where every test example has a twin. Only of runs with `has_outcomes`.
    """
    scored = run.results[run.headline.field()]
    share = clients.subset_accuracy(run.results["test_correct"], run.partition["test_ptr"], _clean(run))
    return _selected(run, run.headline, rule, np.where(np.isnan(scored), np.nan, share))


def num_without_twins(run: Run) -> Int:
    """Return each client's number of test examples without a twin [n]; only of runs with `has_outcomes`."""
    return np.array([piece.sum() for piece in np.split(_clean(run), run.partition["test_ptr"][1:-1])])


def task_names(run: Run) -> list[str]:
    """Return the names of a run's label columns; none where each example has one label."""
    return [str(name) for name in run.partition.get("task_names", ())]


def task_fields(run: Run) -> dict[str, str]:
    """Return the fields by round and label column; before each the name of the one over all columns."""
    pooled = [metric for metric in run.metrics if metric.scope == "pooled"]
    names = [(each.field(part), f"{part}_task_{each.name}") for each in pooled for part in ("test", "val")]
    return {name: stored for name, stored in names if stored in run.results}


def by_task(run: Run) -> dict[str, Float]:
    """Return the metrics by round and label column [R, tasks], named as those over all columns are."""
    return {name: run.results[stored] for name, stored in task_fields(run).items()}


def task_rows(run: Run) -> list[dict[str, Any]]:
    """Return all metrics of each label column in the last evaluated round; nothing where there are none."""
    last = last_evaluated(run)
    rows: list[dict[str, Any]] = [{"task": task} for task in task_names(run)]
    for name, scores in by_task(run).items() if last is not None else ():
        for row, score in zip(rows, scores[last].tolist(), strict=True):
            row[name] = score
    return rows


def last_evaluated(run: Run) -> int | None:
    """Return the last round (0-based) with a value of the headline; None if there is none."""
    rounds = np.flatnonzero(~np.isnan(curve(run.results, run.headline)))
    return int(rounds[-1]) if len(rounds) else None


def _selected(run: Run, metric: Metric, rule: str, scores: Float) -> Float:
    """Return those of some values [R, n] that a rule selects [n]; the metric's own say in which rounds."""
    own = columns(run.results[metric.field()])
    if rule == LAST:
        return selection.at_rounds(scores, selection.last_rounds(own))
    if rule == BEST:
        return selection.at_rounds(scores, best_rounds(run, metric))
    if metric.scope == "client":
        return metric.sign * selection.as_published(metric.sign * scores, splitting_groups(run))
    return selection.at_rounds(scores, selection.best_rounds(metric.sign * own))


def _clean(run: Run) -> npt.NDArray[np.bool_]:
    twins = run.partition["test_twin_own"] | run.partition["test_twin_other"]
    return np.asarray(twins == 0)


def attackers(run: Run) -> Bools | None:
    """Return which clients attack [n]; None in a run without an attack."""
    found = run.results.get("attacker")
    return None if found is None or not len(found) else np.asarray(found[-1] == 1)


def trust(run: Run) -> dict[str, float]:
    """Return, by name, the metrics of benign clients and where attackers are, and the privacy spent.

    Nothing of runs that have neither.
    """
    found: dict[str, float] = {}
    if (hostile := attackers(run)) is not None:
        for metric in (each for each in run.metrics if each.scope == "client"):
            for rule in rules(metric):
                benign = clients.mean(values(run, metric, rule)[~hostile])
                found[f"benign_{metric.field()}{RULES[rule]}"] = benign
        together, exposed = company(np.asarray(run.results["group"][-1]), hostile)
        found |= {"attackers_together": together, "benign_with_attackers": exposed}
    if "epsilon" in run.results and len(run.results["epsilon"]):
        found["epsilon"] = float(run.results["epsilon"][-1])
    return found


def company(group: npt.NDArray[np.integer], hostile: Bools) -> tuple[float, float]:
    """Return the share of attackers in an attacker's group, and of benign clients in a group with one.

    The first is a mean over attackers, each counted in its group; both are 0 to 1. Attackers that are
    isolated have 1 and 0.

    Parameters
    ----------
    group : int [n]
    hostile : bool [n]
    """
    together = [float(hostile[group == own].mean()) for own in group[hostile]]
    exposed = np.isin(group[~hostile], group[hostile])
    return float(np.mean(together)), float(exposed.mean())
