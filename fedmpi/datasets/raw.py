"""A dataset as its files state it, before any choice of node features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import EdgeAttributes, SparseRows, Topology, examples_in

Int = npt.NDArray[np.int64]

LabelKind = Literal["classification", "multi-task", "regression"]
"""One class per example; multi-label with missing labels; regression."""

ExampleKind = Literal["graph", "node", "edge"]
"""What labels are of."""


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
    node_labels : int64 [M, L] or None
        Per label column the file's value minus the column's minimum; M = N without `node_rows`.
    label_widths : tuple of int, length L
        One-hot width of each label column: maximum - minimum + 1.
    node_attributes : float32 [M, A] or SparseRows [M, A], or None
        Continuous attributes, or words.
    labels : int64 [n], or float64 [n, C]
        Class of each example, 0-based in the sorted order of the file's values. For the other tasks a
        column each: 0 or 1, or any number; NaN where one is missing. Examples are graphs, n = G, where
        `places` does not say otherwise.
    class_names : tuple of str, length C
        The file's value of each class; for the other tasks the name of each column.
    task : str
        Task of the labels.
    attribute_names : tuple of str
        Of the columns of `node_attributes`, where they have any.
    edge_attributes : uint8 or float32 [E, B], or None
        Of the edges, in the order of `topology.columns`.
    scaffolds : int64 [G] or None
        Number of each molecule's scaffold.
    refused : tuple of str
        What the files hold and the dataset leaves out: row, reason and content.
    places : int64 [n] or [n, 2], or None
        Node, or sending and receiving node, that each example is, in the order of the graphs.
    node_rows : int64 [N] or None
        Row of each node in `node_labels` and `node_attributes`, where several nodes are one: a node of a
        large graph that is in several ego-networks, a user who rates in several categories.
    graph_classes : int64 [G] or None
        Class of each graph, by which graphs are dealt out, where examples are nodes or pairs.
    parts : int8 [n] or None
        What the files fix of the split: 0 training, 1 validation, 2 test, -1 none of them.
    clients : int64 [G] or [N], or None
        Client of each graph, or of each node where nodes are examples, as the files say.
    client_names : tuple of str
        Of these clients.
    weights : float32 [G] or None
        What each graph counts in the training loss, at least 0; None: all count alike.
    """

    name: str
    topology: Topology
    node_labels: Int | None
    label_widths: tuple[int, ...]
    node_attributes: npt.NDArray[np.float32] | SparseRows | None
    labels: npt.NDArray[Any]
    class_names: tuple[str, ...]
    task: LabelKind = "classification"
    attribute_names: tuple[str, ...] = ()
    edge_attributes: EdgeAttributes | None = None
    scaffolds: Int | None = None
    refused: tuple[str, ...] = ()
    places: Int | None = None
    node_rows: Int | None = None
    graph_classes: Int | None = None
    parts: npt.NDArray[np.int8] | None = None
    clients: Int | None = None
    client_names: tuple[str, ...] = ()
    weights: npt.NDArray[np.float32] | None = None

    @property
    def examples(self) -> ExampleKind:
        """What an example is."""
        return "graph" if self.places is None else "node" if self.places.ndim == 1 else "edge"

    def rows_of(self, nodes: Int) -> Int:
        """Return the rows of nodes in the tables of nodes."""
        return nodes if self.node_rows is None else np.asarray(self.node_rows)[nodes]

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


def example_numbers(raw: RawGraphs, graphs: Int) -> Int:
    """Return the examples of some graphs."""
    return examples_in(raw.topology, raw.places, graphs)[0]


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
        *_attribute_parts(raw.node_attributes),
        ("labels", raw.labels, "<i8" if raw.task == "classification" else "<f8"),
        ("edge_attributes", raw.edge_attributes, _type_of_edges(raw.edge_attributes)),
        ("scaffolds", raw.scaffolds, "<i8"),
        ("places", raw.places, "<i8"),
        ("node_rows", raw.node_rows, "<i8"),
        ("graph_classes", raw.graph_classes, "<i8"),
        ("parts", raw.parts, "|i1"),
        ("clients", raw.clients, "<i8"),
        ("weights", raw.weights, "<f4"),
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


def _type_of_edges(attributes: EdgeAttributes | None) -> str:
    """Return in which type attributes of edges are digested: each in its own."""
    return "|u1" if attributes is None or attributes.dtype == np.uint8 else "<f4"


def _attribute_parts(
    attributes: npt.NDArray[np.float32] | SparseRows | None,
) -> tuple[tuple[str, npt.ArrayLike | None, str], ...]:
    """Return tags, arrays and types of the attributes, for `digest`."""
    if not isinstance(attributes, SparseRows):
        return (("node_attributes", attributes, "<f4"),)
    return (
        ("attribute_width", [attributes.width], "<i8"),
        ("attribute_ptr", attributes.row_ptr, "<i8"),
        ("attribute_columns", attributes.columns, "<i8"),
        ("attribute_values", attributes.values, "<f4"),
    )


_STRATA = 10
"""Classes that a number is cut into, of equal counts."""


def strata(raw: RawGraphs) -> tuple[Int, int]:
    """Return a class for every example, int64 [n], by which splits are stratified, and the number of classes.

    For a single yes-or-no label that is the label; with several it is the first column, from the
    rarest to the commonest, whose label is 1, or none; a number's tenth of the range of the first
    column, tenths of equal counts. Where graphs of nodes are dealt out, a class for every graph, int64 [G].
    """
    if raw.graph_classes is not None:
        return np.asarray(raw.graph_classes), max(raw.num_classes, int(np.max(raw.graph_classes)) + 1)
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
