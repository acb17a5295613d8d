"""Large graphs whose nodes or pairs of nodes are the examples: what their readers share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Float, SparseRows, Topology, pointers


def csr_of(keys: Int, rows: int, width: int) -> tuple[Int, Int]:
    """Return row pointers and columns of ascending places ``row * width + column``."""
    row, columns = np.divmod(keys, width)
    return pointers(np.bincount(row, minlength=rows)), columns


def undirected(first: Int, second: Int, graph_ptr: Int) -> Topology:
    """Return the simple undirected graphs of some pairs: both directions, no self-loops, no duplicates.

    Parameters
    ----------
    first, second : int64 [m]
        Nodes of each pair, of the same graph.
    graph_ptr : int64 [G + 1]
        See `Topology`.
    """
    num_nodes = int(graph_ptr[-1])
    apart = first != second
    low, high = first[apart], second[apart]
    keys = np.unique(np.concatenate([low * num_nodes + high, high * num_nodes + low]))
    return Topology(graph_ptr, *csr_of(keys, num_nodes, num_nodes))


def directed(senders: Int, receivers: Int, graph_ptr: Int) -> Topology:
    """Return the simple directed graphs of some edges: no self-loops, no duplicates; see `attributed`."""
    return attributed(senders, receivers, graph_ptr, None)[0]


def attributed(
    senders: Int, receivers: Int, graph_ptr: Int, attributes: Float | None
) -> tuple[Topology, Float | None]:
    """Return the simple directed graphs of some edges, and the edges' attributes; see `distinct`.

    Parameters
    ----------
    senders, receivers : int64 [m]
        Of the same graph.
    graph_ptr : int64 [G + 1]
        See `Topology`.
    attributes : float32 [m, B] or None
    """
    num_nodes = int(graph_ptr[-1])
    keys = np.where(senders == receivers, -1, receivers * num_nodes + senders)
    keys, attributes = distinct(keys, attributes)
    return Topology(graph_ptr, *csr_of(keys, num_nodes, num_nodes)), attributes


def distinct(keys: Int, attributes: Float | None) -> tuple[Int, Float | None]:
    """Return the ascending keys of simple graphs, and the attributes of each.

    Those of duplicates are added up, as `torch_geometric.utils.coalesce` does.

    Parameters
    ----------
    keys : int64 [m]
        ``receiver * N + sender`` of each edge, -1 for self-loops, which are left out. Sorted in place.
    attributes : float32 [m, B] or None
    """
    order = None if attributes is None else np.argsort(keys, kind="stable")
    keys.sort()
    loops = int(np.searchsorted(keys, 0))
    keys = keys[loops:]
    if len(keys):
        first = np.concatenate([[True], keys[1:] != keys[:-1]])
        keys = keys[first]
    if attributes is None or order is None:
        return keys, None
    attributes = attributes[order[loops:]]
    if len(keys) < len(attributes):
        with np.errstate(over="ignore"):  # whoever read them looks at the sums
            attributes = np.add.reduceat(attributes, np.flatnonzero(first), axis=0)
    return keys, attributes


def with_relations(senders: Int, receivers: Int, relations: Int, graph_ptr: Int) -> tuple[Topology, Int]:
    """Return the directed graphs of some triples, with an edge for each, and its relation, int64 [E].

    Equal triples are one; two nodes may be joined by several relations, a node with itself too.
    """
    num_nodes = int(graph_ptr[-1])
    many = int(relations.max(initial=0)) + 1
    pairs, relation = np.divmod(np.unique((receivers * num_nodes + senders) * many + relations), many)
    return Topology(graph_ptr, *csr_of(pairs, num_nodes, num_nodes)), relation


def in_both_directions(raw: RawGraphs) -> RawGraphs:
    """Return a dataset of pairs in which each pair is an example in both directions.

    FedGraphNN's released code has it so and splits these at random: of most test pairs the other direction
    is trained on.

    Raises
    ------
    BadInput
        Its examples are no pairs.
    """
    if raw.examples != "edge" or raw.places is None:
        raise BadInput(f"dataset.both_directions: {raw.name} has no labels of edges: remove it")
    places = np.concatenate([raw.places, np.asarray(raw.places)[:, ::-1]])
    graph_of = np.searchsorted(raw.topology.graph_ptr, places[:, 0], side="right")
    order = np.argsort(graph_of, kind="stable")
    twice = order % len(raw.places)
    parts = None if raw.parts is None else np.asarray(raw.parts)[twice]
    return replace(raw, places=places[order], labels=np.asarray(raw.labels)[twice], parts=parts)


def rows_of_ones(rows: Int, columns: Int, shape: tuple[int, int]) -> SparseRows:
    """Return a sparse matrix of ones at the given places, repeats allowed."""
    keys = np.unique(rows * shape[1] + columns)
    return SparseRows(*csr_of(keys, *shape), np.ones(len(keys), np.float32), shape[1])


def csr_places(
    row_ptr: npt.NDArray[Any], columns: npt.NDArray[Any], shape: tuple[int, int], where: str
) -> tuple[Int, Int]:
    """Return row and column of each entry of a CSR matrix in a file, int64 [nnz] each.

    Raises
    ------
    BadInput
        These are no CSR matrix of this shape.
    """
    starts: Int = row_ptr.astype(np.int64)
    lengths = starts[1:] - starts[:-1]
    fits = len(row_ptr) == shape[0] + 1 and row_ptr[0] == 0 and row_ptr[-1] == len(columns)
    if not fits or np.any(lengths < 0):
        raise BadInput(
            f"{where}: its row pointers are not those of {shape[0]} rows and {len(columns)} entries"
        )
    if len(columns) and (columns.min() < 0 or columns.max() >= shape[1]):
        raise BadInput(
            f"{where}: its columns run from {columns.min()} to {columns.max()}, but it has {shape[1]}"
        )
    return np.repeat(np.arange(shape[0], dtype=np.int64), lengths), columns.astype(np.int64)


def refuse_other_sizes(raw: RawGraphs, facts: DatasetFacts, where: str) -> None:
    """Raise BadInput for a known dataset that has another size than it should."""
    found = {
        "graphs": (raw.num_graphs, facts.graphs),
        "nodes": (raw.topology.num_nodes, facts.nodes),
        "directed edges": (raw.topology.num_edges, facts.directed_edges),
        "features": (raw.attribute_width, facts.attribute_width),
        "classes": (raw.num_classes, facts.classes),
    }
    for what, (number, expected) in found.items():
        if number != expected:
            raise BadInput(f"{where}: has {number:,} {what}, but {facts.name} has {expected:,}: get it anew")
