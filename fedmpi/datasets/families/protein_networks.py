"""PPI: protein interactions in 24 human tissues, with 121 yes-or-no labels of each protein.

Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs" (NeurIPS 2017); read as
PyTorch Geometric's `PPI` does.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.archives import opened, read_arrays, whole_numbers
from fedmpi.datasets.family import Family
from fedmpi.datasets.networks import undirected
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import pointers

SPLITS = ("train", "valid", "test")
"""In the order of `RawGraphs.parts`: 0 training, 1 validation, 2 test."""

_FILES = ("feats.npy", "graph_id.npy", "labels.npy", "graph.json")


def check_networks(path: Path) -> None:
    """Check, without unpacking, that an archive holds the files needed."""
    with opened(path, [f"{split}_{file}" for split in SPLITS for file in _FILES]):
        pass


def read_networks(path: Path, name: str) -> RawGraphs:
    """Read the graphs of all parts; every node is an example of a multi-label task.

    Links between nodes of two graphs are left out, as by PyTorch Geometric; links are undirected.

    Parameters
    ----------
    path : Path
        ``.zip`` of ``train_feats.npy``, ``train_labels.npy``, ``train_graph_id.npy``,
        ``train_graph.json`` and likewise ``valid`` and ``test``.
    name : str
        Name of the dataset.

    Raises
    ------
    BadInput
        The archive is damaged, or its content is not consistent.
    """
    features, labels, sizes, first, second = zip(*(_part(path, split) for split in SPLITS), strict=True)
    if len({(ours.shape[1], theirs.shape[1]) for ours, theirs in zip(features, labels, strict=True)}) > 1:
        raise BadInput(f"{path}: features and labels must be as many in train, valid and test")
    offsets = pointers([len(each) for each in labels])
    senders, receivers = (
        np.concatenate([nodes + start for nodes, start in zip(each, offsets, strict=False)])
        for each in (first, second)
    )
    topology = undirected(senders, receivers, pointers(np.concatenate(sizes)))
    targets, rows = np.concatenate(labels), np.concatenate(features)
    names = tuple(str(column) for column in range(targets.shape[1]))
    parts = np.repeat(np.arange(3, dtype=np.int8), np.diff(offsets))
    found = RawGraphs(name, topology, None, (), rows, targets, names, "multi-task")
    return replace(found, places=np.arange(len(targets)), parts=parts)


def _part(path: Path, split: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], Int, Int, Int]:
    """Return a part of the split, its nodes in the order of their graphs.

    Features float32 [N, A], labels float64 [N, C], sizes of the graphs [G], nodes of the edges [E] each.
    """
    features, labels = read_arrays(path, [f"{split}_feats", f"{split}_labels"], dimensions=2)
    (graph_id,) = read_arrays(path, [f"{split}_graph_id"])
    where = f"{path}: {split}"
    whole_numbers(graph_id, f"{where}_graph_id.npy")
    num_nodes = len(graph_id)
    if not num_nodes or {len(features), len(labels)} != {num_nodes}:
        counts = f"{len(features)} features, {len(labels)} labels, {num_nodes} graph numbers"
        raise BadInput(f"{where}: must have one of each for every node, not {counts}")
    with np.errstate(over="ignore"):
        single = features.astype(np.float32)
    if not np.isfinite(single).all():
        raise BadInput(f"{where}_feats.npy: must be finite in 32 bits")
    if not np.all((labels == 0) | (labels == 1)):
        raise BadInput(f"{where}_labels.npy: must be 0 or 1")
    first, second = _links(path, split, num_nodes)
    order = np.argsort(graph_id, kind="stable")
    place = np.argsort(order)
    inside = graph_id[first] == graph_id[second]
    _, sizes = np.unique(graph_id, return_counts=True)
    ends = place[first[inside]], place[second[inside]]
    return single[order], labels[order].astype(np.float64), sizes, *ends


def _links(path: Path, split: str, num_nodes: int) -> tuple[Int, Int]:
    """Return the nodes of all links of a part."""
    where = f"{path}: {split}_graph.json"
    with opened(path, [f"{split}_graph.json"]) as (archive, members):
        (content,) = map(archive.read, members.values())
    try:
        links: Any = json.loads(content)["links"]
        ends = [link[end] for end in ("source", "target") for link in links]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{where}: must be an object with links of source and target; get it anew") from error
    if not all(type(end) is int and 0 <= end < num_nodes for end in ends):
        raise BadInput(f"{where}: links something else than nodes below {num_nodes}")
    nodes = np.asarray(ends, np.int64)
    return nodes[: len(links)], nodes[len(links) :]


class ProteinNetworks(Family):
    """One archive; its sizes after clean-up are not known, since no copy was at hand."""

    name = "ppi"
    title = "Protein interactions: multi-label node classification"
    examples = "node"
    edge_attributes = False
    labels = "multi-task"
    names = ("PPI",)
    upstream = "https://data.dgl.ai/dataset"
    columns = ("name", "task", "graphs", "nodes", "features", "labels")

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return task and published sizes."""
        return name, self.labels, 24, 56944, 50, 121

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return "ppi.zip"

    def check(self, path: Path, name: str) -> None:
        """Check that an archive holds the files needed."""
        check_networks(path)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read an archive; see `read_networks`."""
        return read_networks(path, name)
