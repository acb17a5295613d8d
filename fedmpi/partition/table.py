"""What a partition looks like: sizes, classes and how far the clients differ, to print and to store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, strata
from fedmpi.graphs.packed import pointers
from fedmpi.partition.cuts import edges_of
from fedmpi.partition.partition import ClientSplit, Partition

Int = npt.NDArray[np.int64]

COLUMNS = ("client", "dataset", "train", "val", "test", "class shares %", "missing", "stratified", "EMD")
"""Headings of `PartitionTable.rows`."""

_FIGURES = ("sizes", "class_counts", "num_classes", "missing_classes", "stratified", "emd")
"""Arrays that are stored as they are."""

MOST_SHARES = 15
"""Class shares of a client that a line of text names; ToxCast's 618 would fill dozens of lines."""


@dataclass(frozen=True)
class PartitionTable:
    """Figures of n clients; C is the largest number of classes of any dataset.

    Attributes
    ----------
    partition : Partition
        What the figures are of.
    datasets : tuple of str, length n
        Dataset of each client.
    sizes : int64 [n, 3]
        Training, validation and test graphs.
    class_counts : int64 [n, C]
        All graphs of the client by class; 0 past its dataset's number of classes.
    num_classes : int64 [n]
        Classes of the client's dataset.
    missing_classes : int64 [n]
        Of these, how many its training graphs lack.
    stratified : bool [n]
        Whether both steps of the split kept class shares.
    emd : float64 [n]
        ``||q_i - p||_1`` of the client's class shares q_i and those of all clients together, p.
    total_emd : float
        ``sum_i |S_i| / |S| * emd_i`` (FCLG). Over several datasets it compares class *indices*,
        padded to C, whatever these mean in each dataset.
    examples : mapping of str to sequence of int64 arrays
        Example numbers of each client by part, "train", "val" and "test".
    edges : (int, int) or None
        Where a large graph is cut: its edges, and how many of them are between clients, which nobody has.
    """

    partition: Partition
    datasets: tuple[str, ...]
    sizes: Int
    class_counts: Int
    num_classes: Int
    missing_classes: Int
    stratified: npt.NDArray[np.bool_]
    emd: npt.NDArray[np.float64]
    total_emd: float
    examples: Mapping[str, Sequence[Int]]
    edges: tuple[int, int] | None = None

    @property
    def clients(self) -> tuple[str, ...]:
        """Name of each client."""
        return tuple(client.name for client in self.partition.clients)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as arrays to store.

        The example numbers of client ``i`` in part ``train`` (``val``, ``test``) are
        ``train_index[train_ptr[i]:train_ptr[i + 1]]``.
        """
        held = self.partition.clients
        stored: dict[str, npt.NDArray[Any]] = {
            "clients": np.array(self.clients),
            "datasets": np.array(self.datasets),
            "dataset_index": np.array([client.dataset for client in held], np.int64),
            **{name: getattr(self, name) for name in _FIGURES},
            "total_emd": np.array(self.total_emd),
        }
        if self.edges is not None:
            stored |= {"edges": np.array(self.edges[0]), "edges_between": np.array(self.edges[1])}
        for part in ("train", "val", "test"):
            indices = self.examples[part]
            stored[f"{part}_index"] = np.concatenate(indices)
            stored[f"{part}_ptr"] = pointers([len(index) for index in indices])
        return stored

    def rows(self) -> list[tuple[str, ...]]:
        """Return a line of text cells per client under `COLUMNS`, with at most `MOST_SHARES` class shares."""
        lines = []
        for row, (client, dataset) in enumerate(zip(self.clients, self.datasets, strict=True)):
            counts = self.class_counts[row, : self.num_classes[row]]
            shares = " ".join(f"{100 * count / counts.sum():.0f}" for count in counts[:MOST_SHARES])
            shares += " ..." if len(counts) > MOST_SHARES else ""
            missing, kept = str(self.missing_classes[row]), "yes" if self.stratified[row] else "no"
            sizes = map(str, self.sizes[row])
            lines.append((client, dataset, *sizes, shares, missing, kept, f"{self.emd[row]:.4f}"))
        return lines


def describe(partition: Partition, raws: Sequence[RawGraphs]) -> PartitionTable:
    """Return the figures of a partition of these datasets.

    The earth mover's distance is FCLG's: the L1 distance between class shares, weighted by the
    clients' graph counts. p is taken over all graphs that clients hold (a graph held twice
    counts twice), so it is that of the dataset where the partition covers it once.
    """
    held = partition.clients
    by_dataset = [strata(raw) for raw in raws]
    num_classes = np.array([by_dataset[client.dataset][1] for client in held], np.int64)
    width = int(num_classes.max())
    labels = [by_dataset[client.dataset][0] for client in held]
    counts = np.array(
        [np.bincount(own[each.graphs], minlength=width) for each, own in zip(held, labels, strict=True)]
    )
    seen = [len(np.unique(own[each.train])) for each, own in zip(held, labels, strict=True)]
    totals = counts.sum(axis=1)
    emd = np.abs(counts / totals[:, None] - counts.sum(axis=0) / totals.sum()).sum(axis=1)
    return PartitionTable(
        partition=partition,
        datasets=tuple(raws[client.dataset].name for client in held),
        sizes=np.array([[len(c.train), len(c.val), len(c.test)] for c in held], np.int64),
        class_counts=counts,
        num_classes=num_classes,
        missing_classes=num_classes - np.array(seen, np.int64),
        stratified=np.array([client.stratified for client in held]),
        emd=emd,
        total_emd=float(np.cumsum(totals * emd)[-1] / totals.sum()),  # in order: a BLAS rounds by processor
        examples={
            part: [client.examples(raws[client.dataset], part) for client in held]
            for part in ("train", "val", "test")
        },
        edges=_edges(held, raws),
    )


def _edges(held: Sequence[ClientSplit], raws: Sequence[RawGraphs]) -> tuple[int, int] | None:
    """Return the edges of a large graph that is cut, each once, and how many are between clients."""
    raw = raws[0]
    if held[0].nodes is None or raw.num_graphs != 1:
        return None
    if raw.examples == "edge":
        return len(raw.labels), len(raw.labels) - sum(len(client.graphs) for client in held)
    owner = np.full(raw.topology.num_nodes, -1)
    for client, split in enumerate(held):
        owner[split.nodes] = client
    first, second = edges_of(raw.topology).T
    kept = (owner[first] == owner[second]) & (owner[first] >= 0)
    return len(first), int((~kept).sum())
