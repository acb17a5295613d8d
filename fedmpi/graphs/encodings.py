"""Structure encodings of nodes, as FedStar (Tan et al., AAAI 2023) has them: random walks and degrees.

No loop over graphs or nodes: graphs of similar size are computed together, as one sparse block matrix.
Computed once per client and run. Sums are in the order of the edges, so no BLAS has a say in the bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Int, Topology, gather_ranges

Floats = npt.NDArray[np.float64]

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
    found = np.zeros((topology.num_nodes, walks + degrees), np.float32)
    for graphs in _chunks(np.diff(topology.graph_ptr)):
        found[topology.nodes_of(graphs), :walks] = _returns(topology.take(graphs), walks)
    degree = np.bincount(topology.columns, minlength=topology.num_nodes)
    places = walks + np.clip(degree, 1, degrees) - 1
    found[np.arange(len(found)), places] = 1.0
    return found


def _chunks(sizes: Int) -> Iterator[Int]:
    """Yield numbers of graphs of similar sizes, as many as fill a block."""
    ordered = np.argsort(sizes, kind="stable")
    first = 0
    while first < len(ordered):
        last = first + 1
        nodes = int(sizes[ordered[first]])
        while last < len(ordered):
            largest = int(sizes[ordered[last]])
            nodes += largest
            if nodes * largest > _CELLS:
                break
            last += 1
        yield ordered[first:last]
        first = last


def _returns(topology: Topology, walks: int) -> Floats:
    """Return the diagonals of the powers of A D^-1, by their columns: one of every graph at a time."""
    from scipy.sparse import csr_matrix

    nodes = topology.num_nodes
    degree = np.bincount(topology.columns, minlength=nodes)
    step = csr_matrix(
        (1.0 / degree[topology.columns], topology.columns, topology.row_ptr), shape=(nodes, nodes)
    )
    local = gather_ranges(np.zeros(topology.num_graphs, np.int64), np.diff(topology.graph_ptr))
    largest = int(local.max(initial=-1)) + 1
    width = max(1, min(largest, _CELLS // max(1, nodes)))
    found = np.empty((nodes, walks))
    for first in range(0, largest, width):
        mine = np.flatnonzero((local >= first) & (local < first + width))
        walkers = np.zeros((nodes, width))
        walkers[mine, local[mine] - first] = 1.0
        for k in range(walks):
            walkers = step @ walkers
            found[mine, k] = walkers[mine, local[mine] - first]
    return found
