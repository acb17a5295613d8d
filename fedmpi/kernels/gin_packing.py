"""Compiled packing of a GIN's batches: `fedmpi.graphs.refinement.quotient.Quotient.take` inside a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import taken_members, taken_rows, transposed_entries, used_columns
from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import Int
from fedmpi.graphs.products import Floats
from fedmpi.kernels.gin_passes import Matrices


class Graphs(NamedTuple):
    """G graphs of which steps take batches.

    Attributes
    ----------
    matrices : Matrices
        Of all graphs; a step of some of them reads no transposed ones.
    sizes : int64 [G]
        Twin classes of each graph.
    graph_ptr, node_ptr : int64 [G + 1]
        Where those begin, and the nodes.
    num_edges : int64 [G]
    targets : float64 [G, T]
        As their kind has them: see `fedmpi.kernels.targets`.
    """

    matrices: Matrices
    sizes: Int
    graph_ptr: Int
    node_ptr: Int
    num_edges: Int
    targets: npt.NDArray[np.float64]


@compiled
def packed(graphs: Graphs, chosen: Int) -> Matrices:
    """Return some of the graphs, packed as `Quotient.take` does it, with the transposed matrices.

    Parameters
    ----------
    graphs : Graphs
    chosen : int64 [B]
        Their numbers; one may occur several times.
    """
    of, graph_ptr, node_ptr = graphs.matrices, graphs.graph_ptr, graphs.node_ptr
    pointers = np.zeros(len(chosen) + 1, np.int32)
    for g in range(len(chosen)):
        pointers[g + 1] = pointers[g] + graph_ptr[chosen[g] + 1] - graph_ptr[chosen[g]]
    rows = np.empty(pointers[-1], np.int64)
    count = len(rows)
    row_shifts, node_shifts = np.empty(count, np.int64), np.empty(count, np.int64)
    node = 0
    for g in range(len(chosen)):
        start = graph_ptr[chosen[g]]
        for row in range(pointers[g], pointers[g + 1]):
            rows[row] = start + row - pointers[g]
            row_shifts[row] = pointers[g] - start
            node_shifts[row] = node - node_ptr[chosen[g]]
        node += node_ptr[chosen[g] + 1] - node_ptr[chosen[g]]
    member_ptr, members = taken_members(of.member_ptr, of.members, rows, node_shifts)
    closed = taken_rows(of.closed[0], of.closed[1], of.closed[2], rows, row_shifts)
    first, first_of, inputs = of.first, np.empty(count, np.int32), of.inputs
    for row in range(count):
        first_of[row] = of.first_of[rows[row]]
    if 2 * (len(first[0]) - 1) > count:
        first = taken_rows(first[0], first[1], first[2], first_of.astype(np.int64), np.zeros(count, np.int64))
        first_of = np.arange(count).astype(np.int32)
        if 2 * len(inputs) > len(first[1]):
            place, used = used_columns(first[1], len(inputs))
            columns = np.empty(len(first[1]), np.int32)
            for e in range(len(columns)):
                columns[e] = place[first[1][e]]
            first, inputs = (first[0], columns, first[2]), _rows(inputs, used)
    pooling = pointers, np.arange(count).astype(np.int32), np.ones(count, np.float32)
    return Matrices(
        inputs,
        first,
        closed,
        pooling,
        transposed_entries(first[0], first[1], first[2], len(inputs)),
        transposed_entries(closed[0], closed[1], closed[2], count),
        transposed_entries(pooling[0], pooling[1], pooling[2], count),
        first_of,
        member_ptr,
        members,
    )


@compiled
def _rows(of: Floats, numbers: Int) -> Floats:
    found = np.empty((len(numbers), of.shape[1]), np.float32)
    for row in range(len(numbers)):
        for column in range(of.shape[1]):
            found[row, column] = of[numbers[row], column]
    return found
