"""Tasks on made-up labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedmpi.algorithms.fedavg import FedAvg
from fedmpi.case.schema import Case
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology, pointers
from fedmpi.partition.options import Iid
from fedmpi.partition.partition import ClientSplit
from fedmpi.tasks.base import Task
from fedmpi.tasks.known import task_of


def make_raw(labels: np.ndarray, kind: str) -> RawGraphs:
    """Return graphs of one node each with labels [G] or [G, T] of a kind."""
    count = len(labels)
    alone = Topology(np.arange(count + 1), pointers(np.zeros(count, int)), np.zeros(0, np.int64))
    columns = tuple("abcdefgh"[: labels.shape[1]]) if labels.ndim == 2 else ("0", "1")
    return RawGraphs("made up", alone, None, (), None, labels, columns, kind)


def make_task(
    kind: str,
    labels: np.ndarray,
    splits: Sequence[ClientSplit] | None = None,
    targets: str = "raw",
    name: str = "",
) -> Task:
    """Return the task of labels [G] or [G, T] of a kind; by default one client trains on all of them."""
    raw, count = make_raw(labels, kind), len(labels)
    case = Case(
        suite="made up",
        name="made up",
        partition=Iid(clients=1),
        algorithm=FedAvg.Options(name="fedavg"),
        dataset=DatasetOptions(targets=targets),
    )
    everything, nothing = np.arange(count), np.zeros(0, np.int64)
    splits = splits or [ClientSplit("client", 0, everything, nothing, nothing, True)]
    return task_of(name, raw.examples, kind, supervised=True)(case, [raw], splits)
