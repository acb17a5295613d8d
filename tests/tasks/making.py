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


def make_case(**dataset: str) -> Case:
    """Return a case that is only asked for its dataset."""
    options = FedAvg.Options(name="fedavg")
    return Case(suite="s", name="n", partition=Iid(), algorithm=options, dataset=DatasetOptions(**dataset))


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
    everything, nothing = np.arange(count), np.zeros(0, np.int64)
    splits = splits or [ClientSplit("client", 0, everything, nothing, nothing, True)]
    return task_of(name, raw.examples, kind, supervised=True)(make_case(targets=targets), [raw], splits)
