"""What a constant prediction scores on a case, without training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.client.federation import load, task_of_case
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.metrics.clustering import one_cluster
from fedmpi.metrics.metric import CLUSTERING_F1
from fedmpi.partition.partition import Partition, make
from fedmpi.partition.table import describe
from fedmpi.tasks.base import Constants, Task
from fedmpi.tasks.trial import constants_of, guard

_STORED = "constant_"
"""Begins the names under which the record's partition has scores of all clients together."""


@dataclass(frozen=True)
class Scores:
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


def by_client(case: Case, task: Task, raws: Sequence[RawGraphs], partition: Partition) -> Constants:
    """Return `Task.constants`; nothing where no single client is recorded, or clients change by round."""
    if case.record != "full" or partition.population is not None:
        return {}
    return constants_of(task, raws, partition.clients)


def constants(case: Case, source: DataSource) -> Scores:
    """Return the scores of a case, as far as its task knows them; clients without test examples have none.

    Raises
    ------
    BadInput
        A dataset is not prepared, the partition does not fit it, or a plug-in's task fails.
    """
    raws = load(case, source)
    partition = make(case.partition, raws)
    task = task_of_case(case, raws)(case, raws, partition.clients)
    guard(task)
    names = [split.name for split in partition.clients]
    own = {
        metric: {name: each for name, each in zip(names, listed, strict=True) if each is not None}
        for metric, listed in by_client(case, task, raws, partition).items()
    }
    known = {each.name: each.constant for each in task.metrics if not math.isnan(each.constant)}
    stored = {
        name.removeprefix(_STORED): float(np.mean(values))
        for name, values in task.partition().items()
        if name.startswith(_STORED)
    }
    if CLUSTERING_F1 in task.metrics:
        counts = describe(partition, raws).class_counts.sum(axis=0)
        stored[CLUSTERING_F1.name] = one_cluster(counts).macro_f1
    return Scores(own, known | stored)
