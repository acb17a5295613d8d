"""A dataset as its files state it, before any choice of node features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Topology

Int = npt.NDArray[np.int64]


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
    labels : int64 [G]
        Class of each graph, 0-based in the sorted order of the file's values.
    class_names : tuple of str, length C
        The file's value of each class.
    """

    name: str
    topology: Topology
    node_labels: Int | None
    label_widths: tuple[int, ...]
    node_attributes: npt.NDArray[np.float32] | None
    labels: Int
    class_names: tuple[str, ...]

    @property
    def num_classes(self) -> int:
        """Number of classes C."""
        return len(self.class_names)

    @property
    def num_graphs(self) -> int:
        """Number of graphs G."""
        return self.topology.num_graphs

    @property
    def attribute_width(self) -> int:
        """Number of continuous attributes A, 0 where there are none."""
        return 0 if self.node_attributes is None else int(self.node_attributes.shape[1])


def largest_degree(raw: RawGraphs) -> int:
    """Return the largest out-degree of any node, 0 for graphs without edges."""
    columns = raw.topology.columns
    return int(np.bincount(columns).max()) if len(columns) else 0


def digest(raw: RawGraphs) -> str:
    """Return the SHA-256 (hex) of the content as a run sees it.

    It covers structure, node labels and their widths, attributes and classes in a fixed byte
    order; the name, the spelling of class values, and the order, repetition or spacing of the
    file's edge rows do not matter.
    """
    state = hashlib.sha256(b"fedmpi graphs 1\n")
    parts: tuple[tuple[str, npt.ArrayLike | None, str], ...] = (
        ("graph_ptr", raw.topology.graph_ptr, "<i8"),
        ("row_ptr", raw.topology.row_ptr, "<i8"),
        ("columns", raw.topology.columns, "<i8"),
        ("node_labels", raw.node_labels, "<i8"),
        ("label_widths", raw.label_widths, "<i8"),
        ("node_attributes", raw.node_attributes, "<f4"),
        ("labels", raw.labels, "<i8"),
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
