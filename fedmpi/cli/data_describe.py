"""``fedmpi data describe``: what a dataset holds, and how a suite uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from fedmpi.cli.options import Cache, Mirror, Plugin
from fedmpi.cli.terminal import say, show
from fedmpi.config.tables import toml_document
from fedmpi.datasets.features import feature_width
from fedmpi.datasets.options import FEATURES
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.remarks import one_way, remarks
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.partition.splits import MIN_GRAPHS
from fedmpi.tables.table import Table, listed
from fedmpi.tasks.known import usual_task

Data = Annotated[str, typer.Argument(metavar="PATH", help="File, folder or name of a dataset.")]

_MOST_NAMED = 20
"""Classes or label columns that are listed; QM9 has 12, ToxCast 617."""


def describe(name: Data, mirror: Mirror = None, data: Cache = None, plugin: Plugin = None) -> int:
    """Prepare a dataset and print its graphs, features and labels, and the lines of a suite that use it.

    Examples
    --------
    fedmpi data describe ./mine.csv
    """
    source = DataSource.from_environment(data, mirror)
    raws = []
    for member in source.members(name):
        source.check(member)
        source.prepare(member)
        raw = source.load(member)
        facts = Table(listed(["of", "there is"], wrapped=["there is"]), list(_facts(raw)), member)
        show(facts, _labels(raw))
        for line in raw.refused:
            say(f"left out: {line}")
        raws.append(raw)
    if not raws:
        raise BadInput(f"{name} is generated from a suite's options: fedmpi options dataset shows these")
    say("In a suite (fedmpi new FILE writes one), in place of its dataset and partition:")
    for line in ("[case]", *toml_document(_case(name, raws)).splitlines()):
        say(line)
    return 0


def _case(name: str, raws: Sequence[RawGraphs]) -> dict[str, Any]:
    """Return settings of a case that trains on the datasets behind a name."""
    if len(raws) > 1:
        return {"dataset": name, "partition": "per-dataset"}
    (raw,) = raws
    partition: dict[str, Any] = {"name": "iid", "clients": max(1, min(10, len(raw.labels) // MIN_GRAPHS))}
    if raw.clients is not None:
        partition = {"name": "given", "clients": len(raw.client_names)}
    elif raw.places is not None and raw.num_graphs == 1:
        partition["name"] = "louvain"
    if raw.parts is not None:
        partition["parts"] = "dataset"
    model = {} if raw.places is None else {"model": "gcn"}
    return {"dataset": name, "partition": partition, **model}


def _facts(raw: RawGraphs) -> Iterator[tuple[str, str]]:
    """Yield what there is, and how much of it."""
    topology, sizes = raw.topology, np.diff(raw.topology.graph_ptr)
    yield "graphs", f"{raw.num_graphs:,}"
    yield "nodes", f"{topology.num_nodes:,}; {sizes.min():,} to {sizes.max():,} in a graph"
    ways = "directed" if one_way(topology) else "each pair in both directions"
    having = f"; attributes: {raw.edge_width}" if raw.edge_width else ""
    yield "edges", f"{topology.num_edges:,}; {ways}{having}"
    yield "features", ", ".join(f"{kind} ({width})" for kind, width in _features(raw))
    task = usual_task(raw.examples, raw.task)
    what = "classes" if raw.task == "classification" else "columns of labels"
    yield "task", f"{task} of {len(raw.labels):,} {raw.examples}s; {what}: {raw.num_classes}"
    if raw.clients is not None:
        units = np.bincount(np.asarray(raw.clients), minlength=len(raw.client_names))
        yield "clients", f"{len(units):,}, of {units.min():,} to {units.max():,} {raw.examples}s"
    if raw.parts is not None:
        counts = [int(np.sum(np.asarray(raw.parts) == part)) for part in (0, 1, 2, -1)]
        yield "parts", "{:,} training, {:,} validation, {:,} test, {:,} in none".format(*counts)
    if raw.weights is not None:
        weights = np.asarray(raw.weights)
        yield "weights", f"{weights.min():g} to {weights.max():g}, in the training loss"
    yield from (("mind", line) for line in remarks(raw))


def _features(raw: RawGraphs) -> Iterator[tuple[str, int]]:
    """Yield the kinds of features that the dataset has, and their columns."""
    for kind in FEATURES:
        try:
            yield kind, feature_width(raw, kind)
        except BadInput:
            continue


def _labels(raw: RawGraphs) -> Table[Any]:
    """Return the examples of each class, or what each column of labels holds."""
    labels, names = np.asarray(raw.labels), raw.class_names[:_MOST_NAMED]
    more = f", the first {_MOST_NAMED} of {raw.num_classes}" if raw.num_classes > _MOST_NAMED else ""
    if raw.task == "classification":
        counts = np.bincount(labels, minlength=raw.num_classes).tolist()
        return Table(
            listed(["class", f"{raw.examples}s"]), list(zip(names, counts, strict=False)), f"Classes{more}"
        )
    rows = []
    for name, column in zip(names, labels.T, strict=False):
        known = column[~np.isnan(column)]
        held = (int(sum(known == 0)), int(sum(known == 1))) if raw.task == "multi-task" else _range(known)
        rows.append((name, *held, len(column) - len(known)))
    headings = ["0", "1"] if raw.task == "multi-task" else ["least", "mean", "most"]
    return Table(listed(["label", *headings, "gaps"]), rows, f"Labels{more}")


def _range(known: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """Return the least number, the mean and the largest."""
    return (
        tuple(f"{value:g}" for value in (known.min(), known.mean(), known.max()))
        if len(known)
        else ("-",) * 3
    )
