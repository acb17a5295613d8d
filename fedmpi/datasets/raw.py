"""A dataset as its files state it, before any choice of node features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Topology

Int = npt.NDArray[np.int64]

LabelKind = Literal["classification", "multi-task", "regression"]
"""Graph classification; multi-label with missing labels; regression."""


@dataclass(frozen=True)
class RawGraphs:
    """G graphs with N nodes in all.

    Attributes
    ----------
    name : str
        Name of the dataset, or the path it was given by.
    topology : Topology
        Structure; a file row ``a, b`` is an edge from ``a`` to ``b``, so ``a`` is a column of
        row ``b``. Duplicates and self-loops are removed, directions are kept.
    node_labels : int64 [N, L] or None
        Per label column the file's value minus the column's minimum.
    label_widths : tuple of int, length L
        One-hot width of each label column: maximum - minimum + 1.
    node_attributes : float32 [N, A] or None
        Continuous attributes.
    labels : int64 [G], or float64 [G, C]
        Class of each graph, 0-based in the sorted order of the file's values. For the other tasks a
        column each: 0 or 1, or any number; NaN where one is missing.
    class_names : tuple of str, length C
        The file's value of each class; for the other tasks the name of each column.
    task : str
        Task of the labels.
    attribute_names : tuple of str
        Of the columns of `node_attributes`, where they have any.
    edge_attributes : uint8 [E, B] or None
        Of the edges, in the order of `topology.columns`.
    scaffolds : int64 [G] or None
        Number of each molecule's scaffold.
    refused : tuple of str
        What the files hold and the dataset leaves out: row, reason and content.
    """

    name: str
    topology: Topology
    node_labels: Int | None
    label_widths: tuple[int, ...]
    node_attributes: npt.NDArray[np.float32] | None
    labels: npt.NDArray[Any]
    class_names: tuple[str, ...]
    task: LabelKind = "classification"
    attribute_names: tuple[str, ...] = ()
    edge_attributes: npt.NDArray[np.uint8] | None = None
    scaffolds: Int | None = None
    refused: tuple[str, ...] = ()

    @property
    def num_classes(self) -> int:
        """Number of classes or label columns C: outputs of a model."""
        return len(self.class_names)

    @property
    def num_graphs(self) -> int:
        """Number of graphs G."""
        return self.topology.num_graphs

    @property
    def attribute_width(self) -> int:
        """Number of continuous attributes A, 0 where there are none."""
        return 0 if self.node_attributes is None else int(self.node_attributes.shape[1])

    @property
    def edge_width(self) -> int:
        """Number of attributes of an edge B, 0 where there are none."""
        return 0 if self.edge_attributes is None else int(self.edge_attributes.shape[1])


def largest_degree(raw: RawGraphs) -> int:
    """Return the largest out-degree of any node, 0 for graphs without edges."""
    columns = raw.topology.columns
    return int(np.bincount(columns).max()) if len(columns) else 0


def digest(raw: RawGraphs) -> str:
    """Return the SHA-256 (hex) of the content as a run sees it.

    It covers structure, node labels and their widths, attributes, labels, and what else there is
    of edges and scaffolds, in a fixed byte order; the name, the spelling of class values, and the
    order, repetition or spacing of the file's edge rows do not matter.
    """
    state = hashlib.sha256(b"fedmpi graphs 1\n")
    parts: tuple[tuple[str, npt.ArrayLike | None, str], ...] = (
        ("graph_ptr", raw.topology.graph_ptr, "<i8"),
        ("row_ptr", raw.topology.row_ptr, "<i8"),
        ("columns", raw.topology.columns, "<i8"),
        ("node_labels", raw.node_labels, "<i8"),
        ("label_widths", raw.label_widths, "<i8"),
        ("node_attributes", raw.node_attributes, "<f4"),
        ("labels", raw.labels, "<i8" if raw.task == "classification" else "<f8"),
        ("edge_attributes", raw.edge_attributes, "|u1"),
        ("scaffolds", raw.scaffolds, "<i8"),
    )
    for tag, values, dtype in parts:
        if values is None:
            continue
        array = np.ascontiguousarray(values, dtype=dtype)
        if dtype == "<f4":
            array = array + np.float32(0)  # -0.0 becomes 0.0
        state.update(f"{tag} {array.shape}\n".encode())
        state.update(array.data)
    return state.hexdigest()


_STRATA = 10
"""Classes that a number is cut into, of equal counts."""


def strata(raw: RawGraphs) -> tuple[Int, int]:
    """Return a class for every graph, int64 [G], by which splits are stratified, and the number of classes.

    For a single yes-or-no label that is the label; with several it is the first column, from the
    rarest to the commonest, whose label is 1, or none; a number's tenth of the range of the first
    column, tenths of equal counts.
    """
    if raw.task == "classification":
        return np.asarray(raw.labels), raw.num_classes
    labels = np.asarray(raw.labels)
    if raw.task == "regression":
        cuts = np.nanquantile(labels[:, 0], np.arange(1, _STRATA) / _STRATA)
        return np.searchsorted(cuts, labels[:, 0], side="right").astype(np.int64), _STRATA
    positive = labels == 1
    by_rarity = np.argsort(positive.sum(axis=0), kind="stable")
    ordered = positive[:, by_rarity]
    first = by_rarity[np.argmax(ordered, axis=1)] + 1
    return np.where(ordered.any(axis=1), first, 0).astype(np.int64), labels.shape[1] + 1
