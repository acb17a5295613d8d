"""What a case scores without training: the same prediction for every example."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.datasets.source import DataSource
from fedmpi.engine.federation import load, task_of_case
from fedmpi.partition.partition import make

_STORED = "constant_"
"""Begins the names under which the record's partition has scores of all clients together."""


@dataclass(frozen=True)
class Floor:
    """What constant predictions score, by metric.

    Attributes
    ----------
    by_client : dict
        Of metrics of which clients have scores of their own, each client's, with a prediction of its own.
    together : dict
        Of the others.
    """

    by_client: dict[str, dict[str, float]]
    together: dict[str, float]

    def of(self, metric: str, client: str) -> float | None:
        """Return what stands in a client's row; None where that is not known."""
        own = self.by_client.get(metric)
        return self.together.get(metric) if own is None else own.get(client)

    def means(self) -> dict[str, float]:
        """Return what a run would score: means over clients where they have scores of their own."""
        own = {name: float(np.mean(list(each.values()))) for name, each in self.by_client.items() if each}
        return self.together | own


def floor(case: Case, source: DataSource) -> Floor:
    """Return the floor of a case, as far as its task knows it; clients without test examples have none.

    Raises
    ------
    BadInput
        A dataset is not prepared, or the partition does not fit it.
    """
    raws = load(case, source)
    splits = make(case.partition, raws).clients
    task = task_of_case(case, raws)(case, raws, splits)
    names = [split.name for split in splits]
    by_client = {
        metric: {name: each for name, each in zip(names, listed, strict=True) if each is not None}
        for metric, listed in task.constants(raws, splits).items()
    }
    known = {each.name: each.constant for each in task.metrics if not math.isnan(each.constant)}
    stored = {
        name.removeprefix(_STORED): float(np.mean(values))
        for name, values in task.partition().items()
        if name.startswith(_STORED)
    }
    return Floor(by_client, known | stored)
