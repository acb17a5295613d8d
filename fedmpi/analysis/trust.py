"""Figures of runs with attackers, and of runs with differential privacy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.analysis import scores
from fedmpi.metrics import clients
from fedmpi.store.reader import Run

Bools = npt.NDArray[np.bool_]


def attackers(run: Run) -> Bools | None:
    """Return which clients attack [n]; None in a run without an attack."""
    found = run.results.get("attacker")
    return None if found is None or not len(found) else np.asarray(found[-1] == 1)


def figures(run: Run) -> dict[str, float]:
    """Return, by name, the metrics of benign clients and where attackers are, and the privacy spent.

    Nothing of runs that have neither.
    """
    found: dict[str, float] = {}
    hostile = attackers(run)
    if hostile is not None:
        for metric in run.metrics:
            if metric.scope == "client":
                for rule in scores.rules(metric):
                    values = scores.values(run, metric, rule)[~hostile]
                    found[f"benign_{metric.field()}{scores.RULES[rule]}"] = clients.mean(values)
        found["attackers_together"], found["benign_with_attackers"] = company(
            np.asarray(run.results["group"][-1]), hostile
        )
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
