"""Structure encodings of nodes, as FedStar (Tan et al., AAAI 2023) has them: random walks and degrees.

No loop over graphs or nodes: graphs of similar size are computed together, dense where they are small
or have many edges, else as one sparse block matrix. Computed once per client and run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Int, Topology, gather_ranges

Floats = npt.NDArray[np.float64]

_SMALL = 64
"""Graphs of at most so many nodes are computed dense."""

_SPARSE = 16
"""So are larger ones with more than 1 / `_SPARSE` of all possible edges."""

_CELLS = 1_000_000
"""Numbers of one block."""


def structure_encoding(topology: Topology, walks: int, degrees: int) -> npt.NDArray[np.float32]:
    """Return return probabilities of random walks beside one-hot degrees.

    Parameters
    ----------
    topology : Topology
        N nodes.
    walks : int
        Columns k = 1 .. `walks`: the probability of being back after k steps, the diagonal of (A D^-1)^k;
        0 for an isolated node.
    degrees : int
        Columns for degree 1 (and 0), 2, ..., and `degrees` or more, as in the released code.

    Returns
    -------
    float32 [N, walks + degrees]
    """
    sizes = np.diff(topology.graph_ptr)
    edges = np.diff(topology.row_ptr[topology.graph_ptr])
    dense = (sizes <= _SMALL) | (edges * _SPARSE > sizes * sizes)
    found = np.zeros((topology.num_nodes, walks + degrees), np.float32)
    for chosen in _chunks(np.flatnonzero(dense), sizes, squares=True):
        found[topology.nodes_of(chosen), :walks] = _dense_returns(topology.take(chosen), walks)
    for chosen in _chunks(np.flatnonzero(~dense), sizes, squares=False):
        found[topology.nodes_of(chosen), :walks] = _sparse_returns(topology.take(chosen), walks)
    degree = np.bincount(topology.columns, minlength=topology.num_nodes)
    places = walks + np.clip(degree, 1, degrees) - 1
    found[np.arange(len(found)), places] = 1.0
    return found


def _chunks(graphs: Int, sizes: Int, *, squares: bool) -> Iterator[Int]:
    """Yield graphs of similar sizes, as many as fill a block."""
    ordered = graphs[np.argsort(sizes[graphs], kind="stable")]
    first = 0
    while first < len(ordered):
        last = first + 1
        nodes = int(sizes[ordered[first]])
        while last < len(ordered):
            largest = int(sizes[ordered[last]])
            nodes += largest
            cells = (last + 1 - first) * largest * largest if squares else nodes * largest
            if cells > _CELLS:
                break
            last += 1
        yield ordered[first:last]
        first = last


def _steps(topology: Topology) -> tuple[Int, Int, Floats]:
    """Return rows, columns and values of A D^-1, D the degrees of the columns' nodes."""
    degree = np.bincount(topology.columns, minlength=topology.num_nodes)
    columns = np.asarray(topology.columns, np.int64)
    rows = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    return rows, columns, 1.0 / degree[columns]


def _local(topology: Topology) -> tuple[Int, Int]:
    """Return the graph of each node and its number inside it."""
    sizes = np.diff(topology.graph_ptr)
    local = gather_ranges(np.zeros(len(sizes), np.int64), sizes)
    return np.repeat(np.arange(len(sizes)), sizes), local


def _dense_returns(topology: Topology, walks: int) -> Floats:
    """Return the diagonals by batched products: the powers to the half, then traces of pairs of them."""
    graph, local = _local(topology)
    largest = int(local.max(initial=-1)) + 1
    step = np.zeros((topology.num_graphs, largest, largest))
    rows, columns, values = _steps(topology)
    step[graph[rows], local[rows], local[columns]] = values
    half = -(-walks // 2)
    powers = [step]
    for _ in range(half - 1):
        powers.append(powers[-1] @ step)
    found = np.empty((topology.num_nodes, walks))
    for k in range(walks):
        if k < half:
            diagonal = np.diagonal(powers[k], axis1=1, axis2=2)
        else:
            diagonal = np.einsum("bij,bji->bi", powers[-1], powers[k - half])
        found[:, k] = diagonal[graph, local]
    return found


def _sparse_returns(topology: Topology, walks: int) -> Floats:
    """Return the diagonals by a sparse matrix times, for each node, the column of its number in its graph."""
    from scipy.sparse import csr_matrix

    _, local = _local(topology)
    rows, columns, values = _steps(topology)
    step = csr_matrix((values, (rows, columns)), shape=(topology.num_nodes,) * 2)
    found = np.empty((topology.num_nodes, walks))
    width = max(1, _CELLS // topology.num_nodes)
    for first in range(0, int(local.max()) + 1, width):
        mine = np.flatnonzero((local >= first) & (local < first + width))
        walkers = np.zeros((topology.num_nodes, width))
        walkers[mine, local[mine] - first] = 1.0
        for k in range(walks):
            walkers = step @ walkers
            found[mine, k] = walkers[mine, local[mine] - first]
    return found
