"""Tasks on made-up labels."""

from fedmpi.algorithms.fedavg import FedAvg
from fedmpi.case.schema import Case
from fedmpi.datasets.options import DatasetOptions
from fedmpi.partition.options import Iid
from fedmpi.tasks.known import task_of
from tests.making import client, labelled, without_edges


def make_case(**dataset):
    """Return a case that is only asked for its dataset."""
    options = FedAvg.Options(name="fedavg")
    return Case(suite="s", name="n", partition=Iid(), algorithm=options, dataset=DatasetOptions(**dataset))


def make_raw(labels, kind):
    """Return graphs of one node each with labels [G] or [G, T] of a kind."""
    count = len(labels)
    columns = "abcdefgh"[: labels.shape[1]] if labels.ndim == 2 else "01"
    return labelled(without_edges(*[1] * count), labels, columns, "made up", task=kind)


def make_task(kind, labels, splits=None, targets="raw", name=""):
    """Return the task of labels [G] or [G, T] of a kind; by default one client trains on all of them."""
    raw, count = make_raw(labels, kind), len(labels)
    splits = splits or [client(range(count))]
    return task_of(name, raw.examples, kind, supervised=True)(make_case(targets=targets), [raw], splits)
