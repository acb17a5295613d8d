"""Node features of a model's input, built from what a dataset has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import atoms
from fedmpi.datasets.names import family_of
from fedmpi.datasets.networks import undirected
from fedmpi.datasets.options import FEATURES, Scaling
from fedmpi.datasets.raw import Int, RawGraphs, largest_degree
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.errors import BadInput
from fedmpi.graphs import packed

Float = npt.NDArray[np.float32]


def resolve(raw: RawGraphs, kind: str) -> str:
    """Return what `kind` means for this dataset; "original" becomes one of the others.

    GCFL's "original features" are one-hot node labels, or one-hot degrees in the social sets,
    which have neither labels nor attributes. Sets with attributes only (Letter-*) use those, as
    molecules do, whose attributes are "scalar8"; "onehot" is made of them.

    Raises
    ------
    BadInput
        The dataset has no such features, or `kind` is unknown.
    """
    if kind == "identity" and raw.places is None:
        raise BadInput(
            f"features 'identity' are a vector for each node of one graph, which {raw.name} is not"
        )
    if kind not in FEATURES:
        raise BadInput(f"unknown features '{kind}': choose one of {', '.join(FEATURES)}")
    has_labels, has_attributes = raw.node_labels is not None, raw.node_attributes is not None
    if kind == "original":
        if raw.attribute_names:
            return "attributes"
        return "labels" if has_labels else "attributes" if has_attributes else "degree"
    if kind in ("scalar8", "onehot"):
        if raw.attribute_names != atoms.ATOM_COLUMNS:
            raise BadInput(
                f"features '{kind}' are those of molecules read from SMILES, which {raw.name} is not"
            )
        return "attributes" if kind == "scalar8" else kind
    present = {"labels": has_labels, "attributes": has_attributes}
    for part, there in present.items():
        if part in kind.split("+") and not there:
            names = ("original", *present, "degree")
            usable = ", ".join(f"'{name}'" for name in names if present.get(name, True))
            raise BadInput(f"dataset {raw.name} has no node {part}: choose features {usable} or 'constant'")
    return kind


def _degree_max(raw: RawGraphs, degree_max: int | None) -> int:
    if degree_max is not None:
        return degree_max
    if raw.examples == "edge":
        return _most_partners(raw)
    known = family_of(raw.name).degree_max(raw.name)
    return largest_degree(raw) if known is None else known


def _most_partners(raw: RawGraphs) -> int:
    """Return the largest number of nodes that one node is paired with, over all graphs together."""
    assert raw.places is not None
    first, second = raw.rows_of(np.asarray(raw.places)).T
    size = int(max(first.max(), second.max())) + 1
    topology = undirected(first, second, np.array([0, size]))
    return int(np.diff(topology.row_ptr).max())


def _num_rows(raw: RawGraphs) -> int:
    """Return the number of different nodes."""
    return raw.topology.num_nodes if raw.node_rows is None else int(np.max(raw.node_rows)) + 1


def feature_width(raw: RawGraphs, kind: str, degree_max: int | None = None) -> int:
    """Return the number of feature columns d.

    Parameters
    ----------
    raw : RawGraphs
        The dataset.
    kind : str
        One of `FEATURES`.
    degree_max : int or None
        Largest degree that has a column; by default that of the dataset (for the social sets
        the constants of GCFL's code), so d = degree_max + 1.
    """
    meaning = resolve(raw, kind)
    widths = {
        "labels": sum(raw.label_widths),
        "attributes": raw.attribute_width,
        "labels+attributes": sum(raw.label_widths) + raw.attribute_width,
        "constant": 1,
        "identity": _num_rows(raw),
        "onehot": atoms.ONE_HOT_WIDTH,
    }
    return _degree_max(raw, degree_max) + 1 if meaning == "degree" else widths[meaning]


def known_width(facts: DatasetFacts, kind: str) -> int | None:
    """Return `feature_width` before a dataset is read; None where its facts do not say."""
    if kind == "original":
        kind = "labels" if facts.label_width else "attributes" if facts.attribute_width else "degree"
    if kind == "degree":
        return None if facts.degree_max is None else facts.degree_max + 1
    widths = {"labels": facts.label_width, "attributes": facts.attribute_width, "constant": 1}
    return widths.get(kind, facts.label_width + facts.attribute_width)


def build(
    raw: RawGraphs, graphs: Int, kind: str, degree_max: int | None = None, scaling: Scaling = "none"
) -> packed.GraphSet:
    """Return the given graphs with features, ready for a model.

    Parameters
    ----------
    raw : RawGraphs
        The dataset; only the rows of `graphs` are read.
    graphs : int64 [n]
        Graph numbers, repeats allowed.
    kind, degree_max
        See `feature_width`.
    scaling : str
        See `Scaling`.

    Returns
    -------
    GraphSet
        Features float32 [N, d]. "labels+attributes" has the attributes first, as PyTorch
        Geometric; a degree is the number of outgoing edges, as in its OneHotDegree.

    Raises
    ------
    BadInput
        See `resolve`; or a node's degree is above `degree_max`.
    """
    nodes, topology = raw.topology.nodes_of(graphs), raw.topology.take(graphs)
    rows, of_node = feature_table(raw, nodes, topology, kind, degree_max, scaling)
    chosen, places = packed.examples_in(raw.topology, raw.places, graphs)
    labels = np.asarray(raw.labels)[chosen]
    weights = None if raw.weights is None else np.asarray(raw.weights)[graphs]
    return packed.GraphSet(
        topology, rows, of_node, labels, _edges(raw, nodes), places=places, weights=weights
    )


def feature_table(
    raw: RawGraphs,
    nodes: Int,
    topology: packed.Topology,
    kind: str,
    degree_max: int | None = None,
    scaling: Scaling = "none",
) -> tuple[packed.Rows, Int]:
    """Return the distinct rows of features [K, d], as far as they are easily told, and each node's row [N].

    Parameters
    ----------
    raw : RawGraphs
    nodes : int64 [N]
        Node numbers in the dataset.
    topology : Topology
        Structure of these nodes, which gives degrees.
    kind, degree_max
        See `feature_width`.
    scaling : str
        See `Scaling`.
    """
    rows, of_node = _features(raw, nodes, topology, resolve(raw, kind), degree_max)
    if scaling == "none":
        return rows, of_node
    plain = packed.dense(rows)
    if scaling == "row-sum":
        return atoms.divided_by_sum(plain), of_node
    return atoms.standardised_by_graph(plain[of_node], topology.graph_ptr), np.arange(len(nodes))


def _features(
    raw: RawGraphs, nodes: Int, topology: packed.Topology, meaning: str, degree_max: int | None
) -> tuple[packed.Rows, Int]:
    if meaning == "degree":
        rows, of_node = _degree_one_hot(raw.name, topology, _degree_max(raw, degree_max))
        return rows if raw.examples == "graph" else packed.sparse(rows), of_node
    if meaning == "constant":
        return np.ones((1, 1), np.float32), np.zeros(len(nodes), np.int64)
    if meaning == "identity":
        kept, of_node = np.unique(raw.rows_of(nodes), return_inverse=True)
        row_ptr = np.arange(len(kept) + 1)
        return packed.SparseRows(row_ptr, kept, np.ones(len(kept), np.float32), _num_rows(raw)), of_node
    if meaning == "labels":
        return _label_one_hot(raw, nodes)
    if isinstance(raw.node_attributes, packed.SparseRows) and meaning == "attributes":
        kept, of_node = np.unique(raw.rows_of(nodes), return_inverse=True)
        return raw.node_attributes.take(kept), of_node
    if raw.attribute_names and "labels" not in meaning:  # categories and counts: few rows differ
        rows, of_node = _distinct(_attributes(raw, nodes))
        return atoms.one_hot_atoms(rows) if meaning == "onehot" else rows, of_node
    parts = [_attributes(raw, nodes)]
    if "labels" in meaning:
        one_hot, row_of_node = _label_one_hot(raw, nodes)
        parts.append(one_hot[row_of_node])
    return np.concatenate(parts, axis=1), np.arange(len(nodes))


def _distinct(rows: Float) -> tuple[Float, Int]:
    """Return the rows that occur, and the place of each row among them."""
    present, of_node = np.unique(rows, axis=0, return_inverse=True)
    return present, of_node.reshape(-1)


def _edges(raw: RawGraphs, nodes: Int) -> packed.EdgeAttributes | None:
    """Return the attributes of the edges that these nodes receive, where the dataset has any."""
    if raw.edge_attributes is None:
        return None
    row_ptr = raw.topology.row_ptr
    edges = packed.gather_ranges(row_ptr[nodes], np.diff(row_ptr)[nodes])
    return np.asarray(raw.edge_attributes)[edges]


def _attributes(raw: RawGraphs, nodes: Int) -> Float:
    assert raw.node_attributes is not None  # `resolve` refused otherwise
    return packed.dense(packed.take(raw.node_attributes, raw.rows_of(nodes)))


def _label_one_hot(raw: RawGraphs, nodes: Int) -> tuple[Float, Int]:
    """Return the distinct rows of one-hot columns of every label column side by side, and each node's."""
    assert raw.node_labels is not None  # `resolve` refused otherwise
    labels, of_node = np.unique(raw.node_labels[raw.rows_of(nodes)], axis=0, return_inverse=True)
    rows = np.zeros((len(labels), sum(raw.label_widths)), np.float32)
    start = 0
    for column, width in enumerate(raw.label_widths):
        rows[np.arange(len(labels)), start + labels[:, column]] = 1
        start += width
    return rows, of_node.reshape(-1)


def _degree_one_hot(name: str, topology: packed.Topology, degree_max: int) -> tuple[Float, Int]:
    degrees = np.bincount(topology.columns, minlength=topology.num_nodes)
    if len(degrees) and degrees.max() > degree_max:
        raise BadInput(
            f"dataset {name} has a node of degree {degrees.max()}, above the maximum {degree_max}: "
            "raise the maximum degree"
        )
    present, of_node = np.unique(degrees, return_inverse=True)
    rows = np.zeros((len(present), degree_max + 1), np.float32)
    rows[np.arange(len(present)), present] = 1
    return rows, of_node
